// Block-quantised rows in plain C++.
//
// A group is 32 elements: a whole block, or an eighth of a block of 256. Blocks lie at any address.
// Numbers are taken apart as bytes, all 32 alike, so that the compiler does 16 at once.
#include "backend/cpu/portable_blocks.h"

#include <cstring>

#include "backend/cpu/block_type_switch.h"
#include "tensor/dtype.h"

namespace tidekv::cpu::portable {
namespace {

using Byte = unsigned char;

constexpr std::int64_t kGroup = 32;
constexpr std::int64_t kHalf = kGroup / 2;

float f16_at(const Byte* from) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, from, sizeof(bits));
  return f16_to_float(bits);
}

// to[i] = scale * q[i].
template <std::int64_t kCount>
void scale_numbers(const std::int8_t* q, float scale, float* to) {
  for (std::int64_t i = 0; i < kCount; ++i) {
    to[i] = scale * static_cast<float>(q[i]);
  }
}

// to[i] = scale * q[i] + min.
void scale_group(const Byte (&q)[kGroup], float scale, float min, float* to) {
  for (std::int64_t i = 0; i < kGroup; ++i) {
    to[i] = scale * static_cast<float>(q[i]) + min;
  }
}

// The low halves of `from`, or the high ones.
template <std::int64_t kCount>
void low_nibbles(const Byte* from, Byte* q) {
  for (std::int64_t i = 0; i < kCount; ++i) {
    q[i] = from[i] & 0x0F;
  }
}
template <std::int64_t kCount>
void high_nibbles(const Byte* from, Byte* q) {
  for (std::int64_t i = 0; i < kCount; ++i) {
    q[i] = from[i] >> 4;
  }
}

// The low halves of 16 bytes, then the high ones.
void split_nibbles(const Byte* from, Byte (&q)[kGroup]) {
  low_nibbles<kHalf>(from, q);
  high_nibbles<kHalf>(from, q + kHalf);
}

// Four bits each from `from`, the fifth of element i from bit i of four bytes.
void split_five_bits(const Byte* high, const Byte* from, Byte (&q)[kGroup]) {
  constexpr std::int64_t kBits = 8;
  constexpr Byte kBit[kBits] = {0x01, 0x02, 0x04, 0x08, 0x10, 0x20, 0x40, 0x80};
  split_nibbles(from, q);
  Byte bits[kGroup];
  Byte spread[kGroup];
  for (std::int64_t i = 0; i < kGroup; i += kBits) {
    std::memcpy(bits + i, kBit, kBits);
    std::memset(spread + i, high[i / kBits], kBits);
  }
  for (std::int64_t i = 0; i < kGroup; ++i) {
    q[i] = static_cast<Byte>(q[i] | ((spread[i] & bits[i]) != 0 ? 0x10 : 0));
  }
}

// Centred numbers: q - zero.
void subtract(const Byte (&q)[kGroup], int zero, std::int8_t (&to)[kGroup]) {
  for (std::int64_t i = 0; i < kGroup; ++i) {
    to[i] = static_cast<std::int8_t>(q[i] - zero);
  }
}

// How a block is laid out: its size in elements and bytes, and one group of it as floats.
template <BlockType kType>
struct Format;

template <std::int64_t kBlockBytes>
struct SmallBlock {
  static constexpr std::int64_t kLen = kGroup;
  static constexpr std::int64_t kBytes = kBlockBytes;
};

template <std::int64_t kBlockBytes>
struct SuperBlock {
  static constexpr std::int64_t kLen = 256;
  static constexpr std::int64_t kBytes = kBlockBytes;
};

// f16 scale; 32 x i8.
template <>
struct Format<BlockType::kQ80> : SmallBlock<34> {
  static void read(const Byte* block, std::int64_t /*group*/, float* to) {
    std::int8_t q[kGroup];
    std::memcpy(q, block + 2, sizeof(q));
    scale_numbers<kGroup>(q, f16_at(block), to);
  }
};

// f16 scale; 32 x 4 bits, 8 means zero.
template <>
struct Format<BlockType::kQ40> : SmallBlock<18> {
  static void read(const Byte* block, std::int64_t /*group*/, float* to) {
    Byte q[kGroup];
    std::int8_t centred[kGroup];
    split_nibbles(block + 2, q);
    subtract(q, 8, centred);
    scale_numbers<kGroup>(centred, f16_at(block), to);
  }
};

// f16 scale, f16 minimum; 32 x 4 bits.
template <>
struct Format<BlockType::kQ41> : SmallBlock<20> {
  static void read(const Byte* block, std::int64_t /*group*/, float* to) {
    Byte q[kGroup];
    split_nibbles(block + 4, q);
    scale_group(q, f16_at(block), f16_at(block + 2), to);
  }
};

// f16 scale; 32 fifth bits; 32 x 4 bits; 16 means zero.
template <>
struct Format<BlockType::kQ50> : SmallBlock<22> {
  static void read(const Byte* block, std::int64_t /*group*/, float* to) {
    Byte q[kGroup];
    std::int8_t centred[kGroup];
    split_five_bits(block + 2, block + 6, q);
    subtract(q, 16, centred);
    scale_numbers<kGroup>(centred, f16_at(block), to);
  }
};

// f16 scale, f16 minimum; 32 fifth bits; 32 x 4 bits.
template <>
struct Format<BlockType::kQ51> : SmallBlock<24> {
  static void read(const Byte* block, std::int64_t /*group*/, float* to) {
    Byte q[kGroup];
    split_five_bits(block + 4, block + 8, q);
    scale_group(q, f16_at(block), f16_at(block + 2), to);
  }
};

// Scale and minimum of a group of a kQ4K or kQ5K block: twelve bytes hold eight of each in 6 bits.
// The last four of each have their low bits in bytes 8 to 11, their high ones on top of the others.
struct GroupScale {
  float scale;
  float min;
};

GroupScale group_scale(const Byte* block, std::int64_t group) {
  const Byte* packed = block + 4;
  int scale = packed[group % 4] & 0x3F;
  int min = packed[4 + group % 4] & 0x3F;
  if (group >= 4) {
    scale = (packed[4 + group] & 0x0F) | (packed[group - 4] >> 6 << 4);
    min = (packed[4 + group] >> 4) | (packed[group] >> 6 << 4);
  }
  return {f16_at(block) * static_cast<float>(scale), f16_at(block + 2) * static_cast<float>(min)};
}

// Two groups share 32 bytes: the low halves, then the high ones.
void group_nibbles(const Byte* from, std::int64_t group, Byte (&q)[kGroup]) {
  const auto nibbles = group % 2 == 0 ? low_nibbles<kGroup> : high_nibbles<kGroup>;
  nibbles(from + group / 2 * kGroup, q);
}

// f16 scale, f16 minimum, 8 scales and minima of groups; 4 bits each, two groups in 32 bytes.
template <>
struct Format<BlockType::kQ4K> : SuperBlock<144> {
  static void read(const Byte* block, std::int64_t group, float* to) {
    Byte q[kGroup];
    group_nibbles(block + 16, group, q);
    const GroupScale group_scales = group_scale(block, group);
    scale_group(q, group_scales.scale, -group_scales.min, to);
  }
};

// As kQ4K, with the fifth bits of group g in bit g of 32 bytes before the others.
template <>
struct Format<BlockType::kQ5K> : SuperBlock<176> {
  static void read(const Byte* block, std::int64_t group, float* to) {
    const Byte* high = block + 16;
    const auto bit = static_cast<Byte>(1U << static_cast<unsigned>(group));
    Byte q[kGroup];
    group_nibbles(block + 48, group, q);
    for (std::int64_t i = 0; i < kGroup; ++i) {
      q[i] = static_cast<Byte>(q[i] | ((high[i] & bit) != 0 ? 0x10 : 0));
    }
    const GroupScale group_scales = group_scale(block, group);
    scale_group(q, group_scales.scale, -group_scales.min, to);
  }
};

// Two more bits of each number from bit kShift of 32 bytes.
template <int kShift>
void add_quarters(const Byte* high, Byte (&q)[kGroup]) {
  for (std::int64_t i = 0; i < kGroup; ++i) {
    q[i] = static_cast<Byte>(q[i] | ((high[i] >> kShift & 3) << 4));
  }
}

// 128 bytes of low halves, 64 of high quarters, 16 x i8 scales (one for 16 elements), f16 scale;
// 32 means zero. Half a block is four groups: the low halves of 64 bytes, then the high ones; the
// quarters of each group are two more bits of 32 bytes.
template <>
struct Format<BlockType::kQ6K> : SuperBlock<210> {
  static void read(const Byte* block, std::int64_t group, float* to) {
    const std::int64_t half = group / 4;
    const std::int64_t part = group % 4;
    const Byte* high = block + 128 + half * kGroup;
    Byte q[kGroup];
    group_nibbles(block + half * 64, part / 2 + part % 2 * 2, q);
    const auto add = part == 0   ? add_quarters<0>
                     : part == 1 ? add_quarters<2>
                     : part == 2 ? add_quarters<4>
                                 : add_quarters<6>;
    add(high, q);
    std::int8_t centred[kGroup];
    subtract(q, 32, centred);
    const float scale = f16_at(block + 208);
    std::int8_t scales[2];
    std::memcpy(scales, block + 192 + group * 2, sizeof(scales));
    scale_numbers<kHalf>(centred, scale * static_cast<float>(scales[0]), to);
    scale_numbers<kHalf>(centred + kHalf, scale * static_cast<float>(scales[1]), to + kHalf);
  }
};

// Elements [i, i + 32) of a row, i a multiple of 32.
template <BlockType kType>
void read_group(const Byte* row, std::int64_t i, float* to) {
  using Block = Format<kType>;
  Block::read(row + i / Block::kLen * Block::kBytes, i % Block::kLen / kGroup, to);
}

// 32 partial sums, then one fixed tree.
template <BlockType kType>
float dot(const Byte* row, std::int64_t n, const float* a) {
  float sums[kGroup] = {};
  for (std::int64_t i = 0; i < n; i += kGroup) {
    float values[kGroup];
    read_group<kType>(row, i, values);
    for (std::int64_t lane = 0; lane < kGroup; ++lane) {
      sums[lane] += values[lane] * a[i + lane];
    }
  }
  for (std::int64_t width = kGroup / 2; width > 0; width /= 2) {
    for (std::int64_t lane = 0; lane < width; ++lane) {
      sums[lane] += sums[lane + width];
    }
  }
  return sums[0];
}

}  // namespace

void expand(const void* row, BlockType type, std::int64_t first, std::int64_t n, float* to) {
  with_block_type(type, [&]<BlockType kType>(BlockTag<kType>) {
    for (std::int64_t i = 0; i < n; i += kGroup) {
      read_group<kType>(static_cast<const Byte*>(row), first + i, to + i);
    }
  });
}

void block_dots(const BlockRows& w, std::int64_t n, const float* a, Start start, float* sums) {
  with_block_type(w.type, [&]<BlockType kType>(BlockTag<kType>) {
    const auto* row = static_cast<const Byte*>(w.data);
    for (std::int64_t r = 0; r < w.rows; ++r) {
      const float sum = dot<kType>(row, n, a);
      sums[r] = start == Start::kZero ? sum : sums[r] + sum;
      row += w.stride_bytes;
    }
  });
}

}  // namespace tidekv::cpu::portable
