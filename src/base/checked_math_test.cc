#include "base/checked_math.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>

namespace tidekv {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
__extension__ using Wide = __int128;

// Magnitudes spread over all bit lengths, so that about half of the products overflow.
std::int64_t any_size(std::mt19937_64& random) {
  const auto bits = static_cast<std::int64_t>(random() >> 1);
  return bits >> (random() % 63);
}

TEST(CheckedMul, RefusesNegativeFactors) {
  EXPECT_FALSE(checked_mul(-1, 3));
  EXPECT_FALSE(checked_mul(3, -1));
  EXPECT_FALSE(checked_mul(-2, -2));
  EXPECT_FALSE(checked_mul(std::numeric_limits<std::int64_t>::min(), 0));
}

TEST(CheckedMul, IsExactUpToTheLastRepresentableProduct) {
  EXPECT_EQ(checked_mul(kMax, 1), kMax);
  EXPECT_EQ(checked_mul(kMax / 2, 2), kMax - 1);
  EXPECT_FALSE(checked_mul(kMax / 2 + 1, 2));
  EXPECT_EQ(checked_mul(kMax, 0), 0);
}

TEST(CheckedMul, AgreesWith128BitArithmetic) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 20000; ++trial) {
    const std::int64_t a = any_size(random);
    const std::int64_t b = any_size(random);
    const Wide product = static_cast<Wide>(a) * b;
    const auto checked = checked_mul(a, b);
    ASSERT_EQ(checked.has_value(), product <= kMax) << a << " * " << b << ", seed 1";
    if (checked) {
      ASSERT_EQ(static_cast<Wide>(*checked), product) << a << " * " << b << ", seed 1";
    }
  }
}

TEST(CheckedAdd, RefusesNegativeTermsAndOverflow) {
  EXPECT_FALSE(checked_add(-1, 5));
  EXPECT_FALSE(checked_add(5, -1));
  EXPECT_FALSE(checked_add(kMax, 1));
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
}

TEST(CheckedProduct, OfNothingIsOne) { EXPECT_EQ(checked_product({}), 1); }

TEST(CheckedProduct, RefusesAnIntermediateOverflowEvenIfAZeroFollows) {
  EXPECT_FALSE(checked_product({kMax, 2, 0}));
  EXPECT_EQ(checked_product({0, kMax, 2}), 0);
}

TEST(CheckedProduct, RefusesANegativeFactorAnywhere) {
  EXPECT_FALSE(checked_product({2, 3, -1}));
  EXPECT_FALSE(checked_product({-1, 0}));
}

TEST(CheckedProduct, MultipliesAllFactors) { EXPECT_EQ(checked_product({2, 3, 5, 7}), 210); }

TEST(RoundUp, ReturnsTheSmallestMultipleThatIsNotLess) {
  for (std::int64_t step = 1; step <= 9; ++step) {
    for (std::int64_t value = 0; value <= 40; ++value) {
      const std::int64_t rounded = round_up(value, step);
      EXPECT_EQ(rounded % step, 0);
      EXPECT_GE(rounded, value);
      EXPECT_LT(rounded - value, step);
      EXPECT_EQ(ceil_div(value, step) * step, rounded);
    }
  }
}

}  // namespace
}  // namespace tidekv
