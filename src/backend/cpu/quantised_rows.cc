// Rows of keys and values to codes of 2 or 4 bits (KIVI).
//
// Every step but the conversions between types is scalar and the same for every table of kernels,
// so the codes are too. A row is quantised once, and read for every token generated after it.
#include <algorithm>
#include <cstring>
#include <limits>

#include "backend/cpu/operations.h"
#include "base/checked_math.h"

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kMostDim = kPanelDepth;

// Smallest and largest of some elements; a NaN is neither.
struct Range {
  float low = std::numeric_limits<float>::infinity();
  float high = -std::numeric_limits<float>::infinity();

  void take(float x) {
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
};

// Scales and minima of `n` groups, as they are stored and as numbers to compute with.
class Groups {
 public:
  Groups(const Kernels& kernels, const QuantisedRows& to, std::int64_t row)
      : kernels_(kernels), to_(to), row_(row) {}

  void store(const Range* ranges, std::int64_t n) {
    const auto levels = static_cast<float>((1 << to_.bits) - 1);
    for (std::int64_t i = 0; i < n; ++i) {
      scales_[i] = (ranges[i].high - ranges[i].low) / levels;
      minima_[i] = ranges[i].low;
    }
    round(to_.scales, n, scales_);
    round(to_.minima, n, minima_);
  }

  // From 0 to 2^bits - 1, the nearest, ties to even; 0 where the scale is 0 or nothing is a number.
  std::uint32_t code(float x, std::int64_t group) const {
    constexpr float kRoundToInteger = 0x1.8p23F;
    const auto most = static_cast<float>((1 << to_.bits) - 1);
    const float steps = (x - minima_[group]) / scales_[group];
    const float clamped = steps > 0.0F && scales_[group] > 0.0F ? std::min(steps, most) : 0.0F;
    return static_cast<std::uint32_t>((clamped + kRoundToInteger) - kRoundToInteger);
  }

 private:
  void round(DeviceView stored, std::int64_t n, float* numbers) const {
    const Element type = element_of(stored.dtype());
    kernels_.narrow(numbers, n, type, address(stored, row_));
    kernels_.widen(address(stored, row_), type, n, numbers);
  }

  const Kernels& kernels_;
  const QuantisedRows& to_;
  std::int64_t row_;
  float scales_[kMostDim];
  float minima_[kMostDim];
};

// Codes of one row, `group_of(channel)` being its group's number.
template <typename GroupOf>
void store_codes(const float* x, std::int64_t row, const QuantisedRows& to, const Groups& groups,
                 const GroupOf& group_of) {
  const std::int64_t per_word = 32 / to.bits;
  const std::int64_t dim = to.head_dim();
  std::byte* at = address(to.codes, row);
  for (std::int64_t first = 0; first < dim; first += per_word) {
    std::uint32_t word = 0;
    for (std::int64_t c = first; c < std::min(first + per_word, dim); ++c) {
      word |= groups.code(x[c], group_of(c)) << static_cast<unsigned>((c - first) * to.bits);
    }
    std::memcpy(at, &word, sizeof(word));  // the lowest byte first, on the machines that are built
    at += sizeof(word);
  }
}

// Rows [first, first + group_len): one group for each channel.
void quantise_tokens(const Context& context, DeviceView x, const QuantisedRows& to,
                     std::int64_t first) {
  const std::int64_t dim = x.cols();
  const Element type = element_of(x.dtype());
  float wide[kMostDim];
  Range ranges[kMostDim];
  for (std::int64_t row = first; row < first + to.group_len; ++row) {
    context.kernels.widen(address(x, row), type, dim, wide);
    for (std::int64_t c = 0; c < dim; ++c) {
      ranges[c].take(wide[c]);
    }
  }
  Groups groups(context.kernels, to, to.scale_row(first));
  groups.store(ranges, dim);
  for (std::int64_t row = first; row < first + to.group_len; ++row) {
    context.kernels.widen(address(x, row), type, dim, wide);
    store_codes(wide, row, to, groups, [](std::int64_t c) { return c; });
  }
}

// One row: a group for every group_len channels.
void quantise_channels(const Context& context, DeviceView x, const QuantisedRows& to,
                       std::int64_t row) {
  const std::int64_t dim = x.cols();
  float wide[kMostDim];
  Range ranges[kMostDim];
  context.kernels.widen(address(x, row), element_of(x.dtype()), dim, wide);
  for (std::int64_t c = 0; c < dim; ++c) {
    ranges[c / to.group_len].take(wide[c]);
  }
  Groups groups(context.kernels, to, row);
  groups.store(ranges, dim / to.group_len);
  store_codes(wide, row, to, groups, [&](std::int64_t c) { return c / to.group_len; });
}

}  // namespace

void quantise_rows(const Context& context, DeviceView x, const QuantisedRows& to) {
  TIDEKV_CHECK_OP(x.cols(), <=, kMostDim);
  const bool by_token = to.axis == GroupAxis::kTokens;
  const std::int64_t step = by_token ? to.group_len : 1;
  for_row_pieces(context.pool, x.rows() / step, step * x.cols(),
                 [&](std::int64_t first, std::int64_t count, int) {
                   for (std::int64_t i = first; i < first + count; ++i) {
                     (by_token ? quantise_tokens : quantise_channels)(context, x, to, i * step);
                   }
                 });
}

}  // namespace tidekv::cpu
