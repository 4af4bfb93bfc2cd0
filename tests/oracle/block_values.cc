#include "oracle/block_values.h"

#include <cstring>

namespace tidekv::oracle {
namespace {

// A block, read in bits.
struct Block {
  const std::byte* bytes;

  double f16(std::int64_t at) const {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes + at, sizeof(bits));
    return static_cast<double>(f16_to_float(bits));
  }
  int i8(std::int64_t at) const { return static_cast<signed char>(bytes[at]); }
  // `count` bits from bit `shift` of byte `at`.
  int bits(std::int64_t at, std::int64_t shift, int count) const {
    return (std::to_integer<int>(bytes[at]) >> shift) & ((1 << count) - 1);
  }
};

// 32 numbers of four bits: bytes 0 to 15 have 0 to 15 in their low halves, 16 to 31 in the high.
int nibble(const Block& block, std::int64_t at, std::int64_t i) {
  return block.bits(at + i % 16, i / 16 * 4, 4);
}

int five_bits(const Block& block, std::int64_t high_at, std::int64_t at, std::int64_t i) {
  return nibble(block, at, i) + 16 * block.bits(high_at + i / 8, i % 8, 1);
}

// Six-bit scale and minimum of group `g` of eight.
int group_scale(const Block& block, std::int64_t g) {
  return g < 4 ? block.bits(4 + g, 0, 6)
               : block.bits(12 + g - 4, 0, 4) + 16 * block.bits(4 + g - 4, 6, 2);
}
int group_min(const Block& block, std::int64_t g) {
  return g < 4 ? block.bits(8 + g, 0, 6)
               : block.bits(12 + g - 4, 4, 4) + 16 * block.bits(8 + g - 4, 6, 2);
}

double with_group_scales(const Block& block, std::int64_t g, int q) {
  return block.f16(0) * group_scale(block, g) * q - block.f16(2) * group_min(block, g);
}

double q4_k(const Block& block, std::int64_t i) {
  const std::int64_t g = i / 32;
  return with_group_scales(block, g, block.bits(16 + g / 2 * 32 + i % 32, g % 2 * 4, 4));
}

double q5_k(const Block& block, std::int64_t i) {
  const std::int64_t g = i / 32;
  const int low = block.bits(48 + g / 2 * 32 + i % 32, g % 2 * 4, 4);
  return with_group_scales(block, g, low + 16 * block.bits(16 + i % 32, g, 1));
}

double q6_k(const Block& block, std::int64_t i) {
  const std::int64_t half = i / 128;
  const std::int64_t part = i % 128 / 32;
  const int low = block.bits(half * 64 + part % 2 * 32 + i % 32, part / 2 * 4, 4);
  const int high = block.bits(128 + half * 32 + i % 32, part * 2, 2);
  return block.f16(208) * block.i8(192 + i / 16) * (low + 16 * high - 32);
}

}  // namespace

double block_value(DType dtype, const std::byte* bytes, std::int64_t i) {
  const Block block{bytes};
  switch (dtype) {
    case DType::kQ80:
      return block.f16(0) * block.i8(2 + i);
    case DType::kQ40:
      return block.f16(0) * (nibble(block, 2, i) - 8);
    case DType::kQ41:
      return block.f16(0) * nibble(block, 4, i) + block.f16(2);
    case DType::kQ50:
      return block.f16(0) * (five_bits(block, 2, 6, i) - 16);
    case DType::kQ51:
      return block.f16(0) * five_bits(block, 4, 8, i) + block.f16(2);
    case DType::kQ4K:
      return q4_k(block, i);
    case DType::kQ5K:
      return q5_k(block, i);
    case DType::kQ6K:
      return q6_k(block, i);
    default:
      return 0.0;
  }
}

BlockScales block_scales(DType dtype) {
  switch (dtype) {
    case DType::kQ41:
    case DType::kQ51:
    case DType::kQ4K:
    case DType::kQ5K:
      return {0, 2};
    case DType::kQ6K:
      return {208, -1};
    default:
      return {0, -1};
  }
}

double largest_factor(DType dtype) {
  switch (dtype) {
    case DType::kQ80:
      return 128.0;
    case DType::kQ40:
      return 8.0;
    case DType::kQ41:
      return 15.0;
    case DType::kQ50:
      return 16.0;
    case DType::kQ51:
      return 31.0;
    case DType::kQ4K:
      return 63.0 * 15.0;
    case DType::kQ5K:
      return 63.0 * 31.0;
    case DType::kQ6K:
      return 128.0 * 32.0;
    default:
      return 1.0;
  }
}

}  // namespace tidekv::oracle
