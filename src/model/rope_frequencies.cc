#include <cmath>
#include <numbers>

#include "model/config.h"

namespace tidekv {
namespace {

// Every step in FP32 and in the order of Transformers on tensors: a quotient with a scalar above
// is the scalar times the reciprocal, two roundings.
float llama3_frequency(const RopeConfig& rope, float frequency) {
  const auto original_len = static_cast<double>(rope.original_max_positions);
  const auto longest_kept = static_cast<float>(original_len / rope.high_freq_factor);
  const auto shortest_scaled = static_cast<float>(original_len / rope.low_freq_factor);
  const auto factor = static_cast<float>(rope.factor);

  const float wavelen = 1.0F / frequency * static_cast<float>(2.0 * std::numbers::pi);
  if (wavelen < longest_kept) {
    return frequency;
  }
  if (wavelen > shortest_scaled) {
    return frequency / factor;
  }
  const float periods = 1.0F / wavelen * static_cast<float>(original_len);
  const float smooth = (periods - static_cast<float>(rope.low_freq_factor)) /
                       static_cast<float>(rope.high_freq_factor - rope.low_freq_factor);
  return (1.0F - smooth) * frequency / factor + smooth * frequency;
}

float scaled(const RopeConfig& rope, std::size_t i, float frequency) {
  switch (rope.type) {
    case RopeType::kDefault:
      return frequency;
    case RopeType::kLinear:
      return frequency / static_cast<float>(rope.factor);
    case RopeType::kLlama3:
      return llama3_frequency(rope, frequency);
    case RopeType::kDivisors:
      return frequency / rope.divisors[i];
  }
  return frequency;
}

}  // namespace

std::vector<float> rope_inverse_frequencies(const RopeConfig& rope, std::int64_t head_dim) {
  const auto theta = static_cast<double>(static_cast<float>(rope.theta));
  std::vector<float> out;
  for (std::int64_t i = 0; i < head_dim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    const auto power = static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
    const float frequency = 1.0F / power;
    out.push_back(scaled(rope, static_cast<std::size_t>(i), frequency));
  }
  return out;
}

}  // namespace tidekv
