#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tidekv {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::uint32_t bits_of(float value) { return std::bit_cast<std::uint32_t>(value); }
float float_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// The value a 16-bit pattern stands for, from the definition of the format: a sign, `exponent_bits`
// of biased exponent, the rest mantissa.
double value_by_definition(std::uint32_t pattern, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(pattern >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(pattern) & ((1 << mantissa_bits) - 1);
  const double sign = (pattern & 0x8000U) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) {
    using Limits = std::numeric_limits<double>;
    return mantissa == 0 ? sign * Limits::infinity() : Limits::quiet_NaN();
  }
  if (exponent == 0) {
    return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  }
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

void expect_same_value(float got, double want, std::uint32_t pattern) {
  if (std::isnan(want)) {
    EXPECT_TRUE(std::isnan(got)) << pattern;
    return;
  }
  EXPECT_EQ(static_cast<double>(got), want) << pattern;
  EXPECT_EQ(std::signbit(got), std::signbit(want)) << pattern;
}

TEST(Bf16ToFloat, MatchesTheDefinitionForAllPatterns) {
  for (std::uint32_t pattern = 0; pattern < 0x10000U; ++pattern) {
    expect_same_value(bf16_to_float(static_cast<std::uint16_t>(pattern)),
                      value_by_definition(pattern, 8), pattern);
  }
}

TEST(F16ToFloat, MatchesTheDefinitionForAllPatterns) {
  for (std::uint32_t pattern = 0; pattern < 0x10000U; ++pattern) {
    expect_same_value(f16_to_float(static_cast<std::uint16_t>(pattern)),
                      value_by_definition(pattern, 5), pattern);
  }
}

TEST(FloatToBf16, ReturnsEveryBf16ValueUnchanged) {
  for (std::uint32_t pattern = 0; pattern < 0x10000U; ++pattern) {
    const float value = bf16_to_float(static_cast<std::uint16_t>(pattern));
    const std::uint16_t back = float_to_bf16(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(bf16_to_float(back))) << pattern;
      EXPECT_NE(back & 0x0040U, 0U) << "a signalling NaN must become quiet: " << pattern;
    } else {
      EXPECT_EQ(back, pattern);
    }
  }
}

// The three floats around the middle of every two neighbouring bf16 values, infinity included.
TEST(FloatToBf16, RoundsToNearestAndTiesToEven) {
  for (std::uint32_t sign = 0; sign <= 0x8000U; sign += 0x8000U) {
    for (std::uint32_t pattern = 0; pattern < 0x7F80U; ++pattern) {
      const std::uint32_t lower = sign | pattern;
      const std::uint32_t middle = (lower << 16) | 0x8000U;
      const std::uint32_t even = (lower & 1U) == 0 ? lower : lower + 1;
      ASSERT_EQ(float_to_bf16(float_of(middle - 1)), lower);
      ASSERT_EQ(float_to_bf16(float_of(middle)), even);
      ASSERT_EQ(float_to_bf16(float_of(middle + 1)), lower + 1);
    }
  }
}

TEST(FloatToBf16, KeepsEveryNanANan) {
  for (const std::uint32_t bits :
       {0x7F800001U, 0x7F80FFFFU, 0x7FC00000U, 0x7FFFFFFFU, 0xFF800001U, 0xFFFFFFFFU}) {
    EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(float_of(bits))))) << std::hex << bits;
  }
}

TEST(FloatToBf16, OverflowsToInfinityAndKeepsSubnormals) {
  EXPECT_EQ(bf16_to_float(float_to_bf16(std::numeric_limits<float>::max())), kInf);
  EXPECT_EQ(bf16_to_float(float_to_bf16(std::numeric_limits<float>::lowest())), -kInf);
  EXPECT_EQ(bits_of(bf16_to_float(float_to_bf16(float_of(0x00010000U)))), 0x00010000U);
  EXPECT_EQ(bits_of(bf16_to_float(float_to_bf16(-0.0F))), 0x80000000U);
}

TEST(SizeOf, IsFourBytesForF32AndI32AndTwoForTheHalves) {
  EXPECT_EQ(size_of(DType::kF32), 4);
  EXPECT_EQ(size_of(DType::kI32), 4);
  EXPECT_EQ(size_of(DType::kF16), 2);
  EXPECT_EQ(size_of(DType::kBF16), 2);
}

}  // namespace
}  // namespace tidekv
