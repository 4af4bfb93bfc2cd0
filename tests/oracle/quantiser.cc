#include "oracle/quantiser.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tidekv::oracle {
namespace {

double rounded_to(DType dtype, double value) {
  HostTensor one(dtype, 1, 1);
  one.set(0, 0, value);
  return one.at(0, 0);
}

}  // namespace

Group group_of(const std::vector<double>& elements, std::int64_t bits, DType dtype) {
  const auto [low, high] = std::minmax_element(elements.begin(), elements.end());
  const auto levels = static_cast<double>((1 << bits) - 1);
  // In f32 first: a difference and a quotient of numbers of that type.
  const auto scale =
      static_cast<float>(static_cast<float>(*high - *low) / static_cast<float>(levels));
  return {rounded_to(dtype, static_cast<double>(scale)), *low};
}

double steps_of(double x, const Group& group) {
  return group.scale == 0 ? 0 : (x - group.minimum) / group.scale;
}

std::int64_t code_of(double steps, std::int64_t bits) {
  const double clamped = std::clamp(steps, 0.0, static_cast<double>((1 << bits) - 1));
  return static_cast<std::int64_t>(std::nearbyint(clamped));
}

std::vector<std::vector<std::int64_t>> unpacked(const HostTensor& words, std::int64_t num_codes,
                                                std::int64_t bits) {
  std::vector<std::vector<std::int64_t>> rows;
  const std::int64_t per_word = 32 / bits;
  for (std::int64_t row = 0; row < words.rows(); ++row) {
    std::vector<std::int64_t> codes;
    for (std::int64_t i = 0; i < num_codes; ++i) {
      std::uint32_t word = 0;
      std::memcpy(&word, words.bytes().data() + 4 * (row * words.cols() + i / per_word),
                  sizeof(word));
      codes.push_back((word >> (i % per_word * bits)) & ((1U << bits) - 1));
    }
    rows.push_back(std::move(codes));
  }
  return rows;
}

}  // namespace tidekv::oracle
