// What all block-quantised types share in vectors: expanding them, and products with rows as they
// are stored. avx512_blocks.cc and avx2_blocks.cc say how a type becomes vectors.
#pragma once

#ifdef __AVX2__

#include "backend/cpu/kernels.h"
#include "backend/cpu/vectors.h"

namespace tidekv::cpu {
namespace {

using Byte = unsigned char;

// Scales and minima of a row: two for 32 elements, or sixteen for 256.
constexpr std::int64_t kScaleFloats = kDotDepth / 16;

// What was stored is loaded again where it is needed. The compiler would rather shuffle it out of
// registers, or gather it with shuffles, and shuffles are what everything here waits for.
inline void keep_in_memory(const void* at) { __asm__ volatile("" : : "r"(at) : "memory"); }

// How a block is laid out, its size in bytes, how many scales and minima it has, and how one unit
// of it (a block of 32, a part of a block of 256) becomes vectors. portable_blocks.cc describes the
// bytes. Scales are read for several blocks before the first is used: from memory a scale comes
// into all lanes by a load, without the shuffles that everything else waits for.
template <BlockType kType>
struct Format;

// f16 numbers in front of 32 elements.
template <std::int64_t kBlockBytes, std::int64_t kNumScales>
struct SmallBlock {
  static constexpr std::int64_t kBytes = kBlockBytes;
  static constexpr std::int64_t kScales = kNumScales;
  static constexpr int kUnits = 1;
  static constexpr int kVectors = 32 / kLanes;  // of a unit

  // Of one block, four floats: for many read_scales asks less of the units that convert, but what
  // it writes in pieces is slow to load as a whole.
  static void read_scales_alone(const Byte* block, float* to) {
    int bits = 0;
    __builtin_memcpy(&bits, block, kScales * sizeof(short));
    _mm_store_ps(to, widen_4_f16(_mm_cvtsi32_si128(bits)));
  }

  static void read_scales(const Byte* blocks, std::int64_t count, float* to) {
    alignas(64) short bits[kDotDepth / 32 * kScales];
    for (std::int64_t b = 0; b < count; ++b) {
      __builtin_memcpy(bits + b * kScales, blocks + b * kBytes, kScales * sizeof(short));
      keep_in_memory(bits);
    }
    for (std::int64_t i = 0; i < count * kScales; i += kLanes) {
      store<Element::kF32>(load<Element::kF16>(bits, i), to, i);
    }
  }
};

template <std::int64_t kBlockBytes, int kNumUnits>
struct SuperBlock {
  static constexpr std::int64_t kBytes = kBlockBytes;
  static constexpr std::int64_t kScales = 16;
  static constexpr int kUnits = kNumUnits;
  static constexpr int kVectors = static_cast<int>(256 / kLanes / kUnits);
};

// Scales of the eight groups of a kQ4K or kQ5K block, then their minima, 6 bits each.
inline __m128i group_scale_bytes(const Byte* block) {
  std::uint32_t packed[3];
  __builtin_memcpy(packed, block + 4, sizeof(packed));
  const std::uint64_t low_scales = packed[0] & 0x3F3F3F3FU;
  const std::uint64_t low_minima = packed[1] & 0x3F3F3F3FU;
  const std::uint64_t scales = (packed[2] & 0x0F0F0F0FU) | (packed[0] >> 2 & 0x30303030U);
  const std::uint64_t minima = (packed[2] >> 4 & 0x0F0F0F0FU) | (packed[1] >> 2 & 0x30303030U);
  return _mm_set_epi64x(static_cast<long long>(low_minima | minima << 32),
                        static_cast<long long>(low_scales | scales << 32));
}

template <BlockType kType>
void expand_row(const Byte* row, std::int64_t first, std::int64_t n, float* to) {
  using Block = Format<kType>;
  constexpr std::int64_t kUnitLen = Block::kVectors * kLanes;
  alignas(64) float scales[kScaleFloats];
  const Byte* scaled = nullptr;  // the block whose scales these are
  for (std::int64_t i = 0; i < n; i += kUnitLen) {
    const std::int64_t unit = (first + i) / kUnitLen;
    const Byte* block = row + unit / Block::kUnits * Block::kBytes;
    if constexpr (Block::kUnits == 1) {
      Block::read_scales_alone(block, scales);
    } else if (block != scaled) {
      Block::read_scales(block, 1, scales);
      scaled = block;
    }
    Vector v[Block::kVectors];
    Block::read(block, scales, unit % Block::kUnits, v);
    TIDEKV_UNROLL
    for (int j = 0; j < Block::kVectors; ++j) {
      store<Element::kF32>(v[j], to, i + j * kLanes);
    }
  }
}

// One block of 256, or as many of 32 as fill the four sums.
template <BlockType kType>
struct Step {
  using Block = Format<kType>;
  static constexpr int kUnits = Block::kUnits > 1 ? Block::kUnits : kSums / Block::kVectors;
  static constexpr std::int64_t kUnitLen = Block::kVectors * kLanes;
  static constexpr std::int64_t kLen = kUnits * kUnitLen;
  static constexpr std::int64_t kBytes = kUnits / Block::kUnits * Block::kBytes;
  static constexpr std::int64_t kScales = kUnits / Block::kUnits * Block::kScales;

  // Units [kFirst, kLast). Vector j of the step goes into sum j % 4.
  template <int kFirst, int kLast>
  static inline void add(const Byte* blocks, const float* scales, const float* a,
                         Vector (&sums)[kSums]) {
    constexpr std::int64_t kBlock = kFirst / Block::kUnits;
    Vector v[Block::kVectors];
    Block::read(blocks + kBlock * Block::kBytes, scales + kBlock * Block::kScales,
                kFirst % Block::kUnits, v);
    TIDEKV_UNROLL
    for (int j = 0; j < Block::kVectors; ++j) {
      const int to = (kFirst * Block::kVectors + j) % kSums;
      const Vector factors = load<Element::kF32>(a, kFirst * kUnitLen + j * kLanes);
      sums[to] = multiply_add(v[j], factors, sums[to]);
    }
    if constexpr (kFirst + 1 < kLast) {
      add<kFirst + 1, kLast>(blocks, scales, a, sums);
    }
  }
};

// kRows rows side by side, each by the same operations as alone: the sums of one row wait for one
// another, and adding up their lanes takes as long as a short row.
template <BlockType kType, int kRows>
void dot_block_rows(const Byte* row, std::int64_t stride_bytes, std::int64_t n, const float* a,
                    Vector* totals) {
  using Step = Step<kType>;
  constexpr std::int64_t kBlockLen = Step::Block::kUnits * Step::kUnitLen;
  alignas(64) float scales[kRows][kScaleFloats];
  Vector sums[kRows][kSums];
  TIDEKV_UNROLL
  for (int r = 0; r < kRows; ++r) {
    Step::Block::read_scales(row + r * stride_bytes, n / kBlockLen, scales[r]);
    sums[r][0] = sums[r][1] = sums[r][2] = sums[r][3] = zeros();
  }
  std::int64_t i = 0;
  std::int64_t scale = 0;
  for (; i + Step::kLen <= n; i += Step::kLen) {
    TIDEKV_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Byte* at = row + r * stride_bytes;
      prefetch<Step::kBytes>(reinterpret_cast<const char*>(at));
      Step::template add<0, Step::kUnits>(at, scales[r] + scale, a + i, sums[r]);
    }
    row += Step::kBytes;
    scale += Step::kScales;
  }
  if constexpr (Step::kLen > kBlockLen) {
    if (i < n) {
      TIDEKV_UNROLL
      for (int r = 0; r < kRows; ++r) {
        Step::template add<0, 1>(row + r * stride_bytes, scales[r] + scale, a + i, sums[r]);
      }
    }
  }
  TIDEKV_UNROLL
  for (int r = 0; r < kRows; ++r) {
    totals[r] = add_up(sums[r]);
  }
}

template <BlockType kType>
void dot_blocks(const BlockRows& w, std::int64_t n, const float* a, Start start, float* sums) {
  const auto* first = static_cast<const Byte*>(w.data);
  sum_rows<1>(w.rows, start, {sums, 0, 1},
              [&]<int kRows>(Count<kRows>, std::int64_t r, Totals<1>& totals, int at) {
                dot_block_rows<kType, kRows>(first + r * w.stride_bytes, w.stride_bytes, n, a,
                                             totals[0] + at);
              });
}

}  // namespace
}  // namespace tidekv::cpu

#endif
