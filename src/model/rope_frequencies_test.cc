#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "model/config.h"

namespace tidekv {
namespace {

TEST(RopeInverseFrequencies, AreThePowersOfThetaInFloat) {
  // theta = 2^16 and head_dim 32: every power is exact, 2^-i.
  const std::vector<float> frequencies = rope_inverse_frequencies(RopeConfig{.theta = 65536.0}, 32);
  ASSERT_EQ(frequencies.size(), 16U);
  for (std::size_t i = 0; i < frequencies.size(); ++i) {
    EXPECT_EQ(frequencies[i], std::ldexp(1.0F, -static_cast<int>(i)));
  }
}

// Six digits of the table, and no more than a few FP32 roundings beside them.
constexpr double kTableTolerance = 1e-5;

TEST(RopeInverseFrequencies, FollowLlama3ScalingAtFactor8) {
  const RopeConfig scaled = published_shape("llama-3.1-8b").value().rope;
  RopeConfig plain = scaled;
  plain.type = RopeType::kDefault;
  const std::vector<float> before = rope_inverse_frequencies(plain, 128);
  const std::vector<float> after = rope_inverse_frequencies(scaled, 128);
  ASSERT_EQ(after.size(), 64U);

  struct Row {
    std::size_t i;
    double before;
    double after;
  };
  constexpr Row kTable[] = {{29, 0.0026161, 0.00216657},   {30, 0.00213112, 0.00137189},
                            {31, 0.00173605, 0.000856751}, {32, 0.00141421, 0.000524846},
                            {33, 0.00115204, 0.000312694}, {34, 0.000938474, 0.000178508}};
  for (const Row& row : kTable) {
    EXPECT_NEAR(before[row.i] / row.before, 1.0, kTableTolerance) << row.i;
    EXPECT_NEAR(after[row.i] / row.after, 1.0, kTableTolerance) << row.i;
  }
  for (std::size_t i = 0; i < 29; ++i) {
    EXPECT_EQ(after[i], before[i]) << i;
  }
  for (std::size_t i = 35; i < 64; ++i) {
    EXPECT_EQ(after[i], before[i] / 8.0F) << i;
  }
}

// The rule in double precision, for factor 32 and heads of 64.
TEST(RopeInverseFrequencies, FollowLlama3ScalingAtFactor32) {
  const std::vector<float> frequencies =
      rope_inverse_frequencies(published_shape("llama-3.2-1b").value().rope, 64);
  ASSERT_EQ(frequencies.size(), 32U);
  int smoothed = 0;
  for (int i = 0; i < 32; ++i) {
    const double plain = std::pow(500000.0, -2.0 * i / 64.0);
    const double periods = 8192.0 * plain / (2.0 * std::acos(-1.0));
    const double smooth = (periods - 1.0) / 3.0;
    const double expected = periods > 4.0   ? plain
                            : periods < 1.0 ? plain / 32.0
                                            : (1.0 - smooth) * plain / 32.0 + smooth * plain;
    smoothed += periods >= 1.0 && periods <= 4.0 ? 1 : 0;
    // Near smooth = 0 the roundings of `periods` count against a result 32 times smaller.
    EXPECT_NEAR(frequencies[static_cast<std::size_t>(i)] / expected, 1.0, 32 * 4 * 1.2e-7) << i;
  }
  EXPECT_EQ(smoothed, 3);
}

}  // namespace
}  // namespace tidekv
