// attend for generated tokens over keys and values in few bits (KIVI).
//
// A task makes floats of one tile of codes at a time, in its own scratch: of the cache only codes
// and scales are read from memory.
#include "backend/cpu/row_attention.h"

namespace tidekv::cpu {
namespace {

class QuantisedCache {
 public:
  QuantisedCache(const QuantisedKvView& kv, Element type) : kv_(kv), type_(type) {}

  std::int64_t room_floats() const { return kKeyTile * kv_.head_dim(); }
  std::int64_t len(std::int64_t /*kv_head*/) const { return kv_.num_tokens; }

  ElementRows keys(const Kernels& kernels, std::int64_t kv_head, KeyRange range,
                   float* room) const {
    expand(kernels, kv_.keys, kv_head, head_of(range, kv_.num_quantised_keys), room);
    const std::int64_t first = kv_head * kv_.rows_of_head(kv_.recent_keys) - kv_.num_quantised_keys;
    for (std::int64_t token = std::max(range.begin, kv_.num_quantised_keys); token < range.end;
         ++token) {
      widen(kernels, kv_.recent_keys, first + token, room + (token - range.begin) * dim());
    }
    return {room, Element::kF32, dim(), range.len()};
  }

  ElementRows values(const Kernels& kernels, std::int64_t kv_head, KeyRange range,
                     float* room) const {
    expand(kernels, kv_.values, kv_head, head_of(range, kv_.num_quantised_values), room);
    const std::int64_t rows = kv_.rows_of_head(kv_.recent_values);
    for (std::int64_t token = std::max(range.begin, kv_.num_quantised_values); token < range.end;
         ++token) {
      widen(kernels, kv_.recent_values, kv_head * rows + token % rows,
            room + (token - range.begin) * dim());
    }
    return {room, Element::kF32, dim(), range.len()};
  }

 private:
  std::int64_t dim() const { return kv_.head_dim(); }
  // What lies before `end` of the range.
  static KeyRange head_of(KeyRange range, std::int64_t end) {
    return {range.begin, std::max(range.begin, std::min(range.end, end))};
  }
  void widen(const Kernels& kernels, DeviceView rows, std::int64_t row, float* to) const {
    kernels.widen(address(rows, row), type_, dim(), to);
  }

  // Tokens `range` of a head to floats.
  void expand(const Kernels& kernels, const QuantisedRows& rows, std::int64_t kv_head,
              KeyRange range, float* to) const {
    constexpr std::int64_t kScales = 4 * kPanelDepth;  // widened at once
    float scales[kScales];
    float minima[kScales];
    const std::int64_t first = kv_head * (rows.num_rows() / kv_.num_kv_heads);
    const std::int64_t cols = rows.scales.cols();
    CodeRow codes{nullptr, rows.bits, scales, minima,
                  rows.axis == GroupAxis::kTokens ? 1 : rows.group_len};
    std::int64_t begin = 0;  // rows [begin, end) of scales are in `scales`
    std::int64_t end = 0;
    for (std::int64_t row = first + range.begin; row < first + range.end; ++row, to += dim()) {
      const std::int64_t at = rows.scale_row(row);
      if (at >= end) {
        begin = at;
        end = std::min(rows.scale_row(first + range.end - 1) + 1, begin + kScales / cols);
        kernels.widen(address(rows.scales, begin), type_, (end - begin) * cols, scales);
        kernels.widen(address(rows.minima, begin), type_, (end - begin) * cols, minima);
      }
      codes.codes = address(rows.codes, row);
      codes.scales = scales + (at - begin) * cols;
      codes.minima = minima + (at - begin) * cols;
      kernels.expand_codes(codes, dim(), to);
    }
  }

  const QuantisedKvView& kv_;
  Element type_;
};

}  // namespace

void attend_quantised(const Context& context, DeviceView q, const QuantisedKvView& kv) {
  const AttentionShape shape(context.kernels, q, kv.num_kv_heads, kv.num_kv_heads, kv.head_dim());
  attend_rows(context, q, shape, QuantisedCache(kv, shape.type));
}

}  // namespace tidekv::cpu
