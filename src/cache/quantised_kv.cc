#include "cache/quantised_kv.h"

#include "base/check.h"

namespace tidekv {
namespace {

// Tokens of a head that are codes once `num_tokens` have settled.
struct Quantised {
  std::int64_t keys;
  std::int64_t values;

  Quantised(std::int64_t num_tokens, std::int64_t residual_len)
      : keys(num_tokens - num_tokens % residual_len),
        values(std::max<std::int64_t>(0, num_tokens - residual_len)) {}
};

// Bytes of codes, and of scales and minima, of all heads.
struct QuantisedBytes {
  std::int64_t codes;
  std::int64_t scales;

  QuantisedBytes(const CacheShape& shape, const Quantised& tokens) {
    const KvQuantiser& quantiser = shape.quantiser;
    const std::int64_t words = QuantisedRows::code_words(shape.head_dim, quantiser.bits);
    const std::int64_t rows = shape.num_kv_heads * (tokens.keys + tokens.values);
    codes = rows * words * size_of(DType::kI32);
    scales = rows * shape.head_dim / quantiser.group_len * 2 * size_of(shape.dtype);
  }
};

// Gives out the bytes of a buffer from the front.
class Carver {
 public:
  explicit Carver(const Buffer& buffer) : buffer_(&buffer) {}
  DeviceView take(DType dtype, std::int64_t rows, std::int64_t cols) {
    const DeviceView view = buffer_->view(dtype, rows, cols, used_);
    used_ += view.num_bytes();
    return view;
  }

 private:
  const Buffer* buffer_;
  std::int64_t used_ = 0;
};

QuantisedRows lay_out(const CacheShape& shape, GroupAxis axis, std::int64_t num_rows, Carver& codes,
                      Carver& scales) {
  QuantisedRows rows;
  rows.bits = shape.quantiser.bits;
  rows.group_len = shape.quantiser.group_len;
  rows.axis = axis;
  rows.codes =
      codes.take(DType::kI32, num_rows, QuantisedRows::code_words(shape.head_dim, rows.bits));
  const std::int64_t cols =
      axis == GroupAxis::kTokens ? shape.head_dim : shape.head_dim / rows.group_len;
  rows.scales = scales.take(shape.dtype, rows.scale_row(num_rows), cols);
  rows.minima = scales.take(shape.dtype, rows.scale_row(num_rows), cols);
  return rows;
}

}  // namespace

Result<QuantisedKv> QuantisedKv::allocate(Backend& backend, const CacheShape& shape,
                                          std::span<HeadSpan> spans) {
  const std::int64_t residual_len = shape.quantiser.residual_len;
  const std::int64_t most_tokens = shape.prompt_len + shape.growth_len;
  const Quantised all(most_tokens, residual_len);
  const QuantisedBytes now(shape, Quantised(shape.prompt_len, residual_len));
  const QuantisedBytes later(shape, all);
  QuantisedKv kv;
  kv.num_kv_heads_ = shape.num_kv_heads;
  kv.residual_len_ = residual_len;
  kv.recent_len_ = std::min(residual_len + 1, most_tokens);
  kv.spans_ = spans;
  TIDEKV_ASSIGN(kv.codes_, backend.allocate({{Component::kPackedCodes, now.codes},
                                             {Component::kDecodeGrowth, later.codes - now.codes}}));
  TIDEKV_ASSIGN(kv.scales_,
                backend.allocate({{Component::kPackedScales, now.scales},
                                  {Component::kDecodeGrowth, later.scales - now.scales}}));
  TIDEKV_ASSIGN(kv.recent_,
                backend.allocate({{Component::kCompactCache, shape.kv_bytes(kv.recent_len_)}}));
  Carver codes(kv.codes_);
  Carver scales(kv.scales_);
  Carver recent(kv.recent_);
  const std::int64_t recent_rows = shape.num_kv_heads * kv.recent_len_;
  kv.keys_.codes = lay_out(shape, GroupAxis::kTokens, shape.num_kv_heads * all.keys, codes, scales);
  kv.values_.codes =
      lay_out(shape, GroupAxis::kChannels, shape.num_kv_heads * all.values, codes, scales);
  kv.keys_.recent = recent.take(shape.dtype, recent_rows, shape.head_dim);
  kv.values_.recent = recent.take(shape.dtype, recent_rows, shape.head_dim);
  kv.keys_.ring_len = residual_len;
  kv.values_.ring_len = residual_len + 1;  // one waits for its token to attend
  return kv;
}

void QuantisedKv::fill(Backend& backend, const KvView& prompt) {
  TIDEKV_CHECK_OP(num_tokens_, ==, 0);
  num_tokens_ = prompt.heads.front().len;
  const Quantised tokens(num_tokens_, residual_len_);
  keys_.num_quantised = tokens.keys;
  values_.num_quantised = tokens.values;
  fill_half(backend, keys_, prompt.keys, prompt.heads);
  fill_half(backend, values_, prompt.values, prompt.heads);
}

void QuantisedKv::fill_half(Backend& backend, const Half& half, DeviceView rows,
                            std::span<const HeadSpan> heads) const {
  for (std::int64_t head = 0; head < num_kv_heads_; ++head) {
    const HeadSpan& from = heads[static_cast<std::size_t>(head)];
    TIDEKV_CHECK_OP(from.len, ==, num_tokens_);
    if (half.num_quantised > 0) {
      backend.quantise_rows(rows.rows_at(from.offset, half.num_quantised),
                            codes_at(half, head, 0, half.num_quantised));
    }
    for_each_recent(half, head, [&](DeviceView to, std::int64_t token) {
      backend.copy(rows.rows_at(from.offset + token, to.rows()), to);
    });
  }
}

KvView QuantisedKv::room(std::int64_t rows) {
  TIDEKV_CHECK_OP(rows, ==, 1);
  for (std::int64_t head = 0; head < num_kv_heads_; ++head) {
    spans_[static_cast<std::size_t>(head)] = {head * recent_len_, 0, 1};
  }
  // From its row on the next head's is recent_len_ rows away, for keys and values alike.
  const auto from_next_row = [&](const Half& half) {
    const std::int64_t row = num_tokens_ % half.ring_len;
    return half.recent.rows_at(row, (num_kv_heads_ - 1) * recent_len_ + 1);
  };
  return {from_next_row(keys_), from_next_row(values_), spans_};
}

void QuantisedKv::advance(std::int64_t rows) {
  num_tokens_ += rows;
  TIDEKV_CHECK_OP(num_tokens_ - keys_.num_quantised, <=, keys_.ring_len);
  TIDEKV_CHECK_OP(num_tokens_ - values_.num_quantised, <=, recent_len_);
}

KeyCounts QuantisedKv::keys_met(std::int64_t rows) const {
  const std::int64_t len = num_tokens_ + rows;
  return {len, num_kv_heads_ * len};
}

// The prompt attends before it turns into codes, so nothing is to be held here.
void QuantisedKv::attend(Backend& backend, DeviceView q, const AttentionOptions& options) {
  TIDEKV_CHECK(options.phase == Phase::kDecode && options.mask.rows() == 0);
  backend.attend_quantised(q, view());
}

void QuantisedKv::settle(Backend& backend) {
  if (num_tokens_ - keys_.num_quantised == residual_len_) {
    quantise_next(backend, keys_, residual_len_);
  }
  if (num_tokens_ - values_.num_quantised > residual_len_) {
    quantise_next(backend, values_, 1);
  }
}

void QuantisedKv::quantise_next(Backend& backend, Half& half, std::int64_t count) const {
  const std::int64_t row = half.num_quantised % half.ring_len;
  for (std::int64_t head = 0; head < num_kv_heads_; ++head) {
    backend.quantise_rows(half.recent.rows_at(head * recent_len_ + row, count),
                          codes_at(half, head, half.num_quantised, count));
  }
  half.num_quantised += count;
}

QuantisedKvView QuantisedKv::view() const {
  return {.keys = keys_.codes,
          .values = values_.codes,
          .recent_keys = keys_.recent,
          .recent_values = values_.recent,
          .num_kv_heads = num_kv_heads_,
          .num_tokens = num_tokens_,
          .num_quantised_keys = keys_.num_quantised,
          .num_quantised_values = values_.num_quantised};
}

}  // namespace tidekv
