// Block-quantised rows in AVX-512.
//
// An element is scale * q, or scale * q plus a minimum. The product is exact in f32 (11 significant
// bits of an f16, at most 7 of a group's scale and 7 of q, 23 together), so a fused multiply-add
// gives the bits of a product and a sum. Numbers of four bits pick from a table of their 16 values,
// which the lanes of one register hold.
#include "backend/cpu/avx512_blocks.h"

#include "backend/cpu/avx512_vectors.h"
#include "backend/cpu/block_type_switch.h"

namespace tidekv::cpu::avx512 {
namespace {

using Byte = unsigned char;

// Scales and minima of a row: two for 32 elements, or sixteen for 256.
constexpr std::int64_t kScaleFloats = kDotDepth / 16;

// What was stored is loaded again where it is needed. The compiler would rather shuffle it out of
// registers, or gather it with shuffles, and shuffles are what everything here waits for.
inline void keep_in_memory(const void* at) { __asm__ volatile("" : : "r"(at) : "memory"); }

inline __m128i load_16_bytes(const Byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

inline __m256i load_32_bytes(const Byte* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

// Lane i is i + first.
inline __m512 counting_from(float first) {
  const __m512 count = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_add_ps(count, _mm512_set1_ps(first));
}

// The values of 16 bytes' low halves, then of their high ones. Lanes are picked by four bits.
inline void pick_nibbles(const Byte* from, __m512 low_table, __m512 high_table, __m512& low,
                         __m512& high) {
  const __m512i bytes = _mm512_cvtepu8_epi32(load_16_bytes(from));
  low = _mm512_permutexvar_ps(bytes, low_table);
  high = _mm512_permutexvar_ps(_mm512_srli_epi32(bytes, 4), high_table);
}

// 16 bytes' low halves, then their high ones.
inline __m256i split_nibbles(const Byte* from) {
  const __m128i bytes = load_16_bytes(from);
  const __m256i both = _mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes);
  return _mm256_and_si256(both, _mm256_set1_epi8(0x0F));
}

inline __mmask32 load_mask(const Byte* at) {
  unsigned bits = 0;
  __builtin_memcpy(&bits, at, sizeof(bits));
  return bits;
}

inline __m512 to_floats(__m128i signed_bytes) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(signed_bytes));
}

// How a block is laid out, its size in bytes, how many scales and minima it has, and how one unit
// of it (a block of 32, a half of a block of 256) becomes vectors. portable_blocks.cc describes the
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
  static constexpr int kVectors = 2;  // of a unit

  // Of one block, four floats: for many read_scales asks less of the units that convert, but what
  // it writes in pieces is slow to load as a whole.
  static void read_scales_alone(const Byte* block, float* to) {
    int bits = 0;
    __builtin_memcpy(&bits, block, kScales * sizeof(short));
    _mm_store_ps(to, _mm_maskz_cvtph_ps(0x0F, _mm_cvtsi32_si128(bits)));
  }

  static void read_scales(const Byte* blocks, std::int64_t count, float* to) {
    alignas(32) short bits[kDotDepth / 32 * kScales];
    for (std::int64_t b = 0; b < count; ++b) {
      __builtin_memcpy(bits + b * kScales, blocks + b * kBytes, kScales * sizeof(short));
      keep_in_memory(bits);
    }
    for (std::int64_t i = 0; i < count * kScales; i += kLanes) {
      const __m256i some = _mm256_load_si256(reinterpret_cast<const __m256i*>(bits + i));
      _mm512_store_ps(to + i, _mm512_cvtph_ps(some));
    }
  }
};

template <std::int64_t kBlockBytes>
struct SuperBlock {
  static constexpr std::int64_t kBytes = kBlockBytes;
  static constexpr std::int64_t kScales = 16;
  static constexpr int kUnits = 2;
  static constexpr int kVectors = 8;
};

template <>
struct Format<BlockType::kQ80> : SmallBlock<34, 1> {
  static void read(const Byte* block, const float* scales, std::int64_t /*unit*/,
                   __m512 (&v)[kVectors]) {
    const __m512 scale = _mm512_set1_ps(scales[0]);
    v[0] = _mm512_mul_ps(scale, to_floats(load_16_bytes(block + 2)));
    v[1] = _mm512_mul_ps(scale, to_floats(load_16_bytes(block + 18)));
  }
};

template <>
struct Format<BlockType::kQ40> : SmallBlock<18, 1> {
  static void read(const Byte* block, const float* scales, std::int64_t /*unit*/,
                   __m512 (&v)[kVectors]) {
    const __m512 table = _mm512_mul_ps(counting_from(-8.0F), _mm512_set1_ps(scales[0]));
    pick_nibbles(block + 2, table, table, v[0], v[1]);
  }
};

template <>
struct Format<BlockType::kQ41> : SmallBlock<20, 2> {
  static void read(const Byte* block, const float* scales, std::int64_t /*unit*/,
                   __m512 (&v)[kVectors]) {
    const __m512 table =
        _mm512_fmadd_ps(counting_from(0.0F), _mm512_set1_ps(scales[0]), _mm512_set1_ps(scales[1]));
    pick_nibbles(block + 4, table, table, v[0], v[1]);
  }
};

template <>
struct Format<BlockType::kQ50> : SmallBlock<22, 1> {
  static void read(const Byte* block, const float* scales, std::int64_t /*unit*/,
                   __m512 (&v)[kVectors]) {
    const __m256i nibbles = split_nibbles(block + 6);
    // Without the fifth bit it is q - 16: the bits above the fourth are ones.
    const __m256i q = _mm256_mask_blend_epi8(
        load_mask(block + 2), _mm256_or_si256(nibbles, _mm256_set1_epi8(-16)), nibbles);
    const __m512 scale = _mm512_set1_ps(scales[0]);
    v[0] = _mm512_mul_ps(scale, to_floats(_mm256_castsi256_si128(q)));
    v[1] = _mm512_mul_ps(scale, to_floats(_mm256_extracti128_si256(q, 1)));
  }
};

template <>
struct Format<BlockType::kQ51> : SmallBlock<24, 2> {
  static void read(const Byte* block, const float* scales, std::int64_t /*unit*/,
                   __m512 (&v)[kVectors]) {
    const __m256i nibbles = split_nibbles(block + 8);
    const __m256i q = _mm256_mask_blend_epi8(load_mask(block + 4), nibbles,
                                             _mm256_or_si256(nibbles, _mm256_set1_epi8(16)));
    const __m512 scale = _mm512_set1_ps(scales[0]);
    const __m512 min = _mm512_set1_ps(scales[1]);
    v[0] = _mm512_fmadd_ps(scale, to_floats(_mm256_castsi256_si128(q)), min);
    v[1] = _mm512_fmadd_ps(scale, to_floats(_mm256_extracti128_si256(q, 1)), min);
  }
};

// Scales of the eight groups of a kQ4K or kQ5K block, then their minima.
inline void read_group_scales(const Byte* block, float* to) {
  std::uint32_t packed[3];
  __builtin_memcpy(packed, block + 4, sizeof(packed));
  const std::uint64_t low_scales = packed[0] & 0x3F3F3F3FU;
  const std::uint64_t low_minima = packed[1] & 0x3F3F3F3FU;
  const std::uint64_t scales = (packed[2] & 0x0F0F0F0FU) | (packed[0] >> 2 & 0x30303030U);
  const std::uint64_t minima = (packed[2] >> 4 & 0x0F0F0F0FU) | (packed[1] >> 2 & 0x30303030U);
  const __m128i bytes = _mm_set_epi64x(static_cast<long long>(low_minima | minima << 32),
                                       static_cast<long long>(low_scales | scales << 32));
  int both = 0;
  __builtin_memcpy(&both, block, sizeof(both));
  const __m512 of_block = _mm512_cvtph_ps(_mm256_set1_epi32(both));
  const __m512 spread = _mm512_permutexvar_ps(
      _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1), of_block);
  _mm512_store_ps(to, _mm512_mul_ps(spread, _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))));
}

template <std::int64_t kBlockBytes>
struct GroupedBlock : SuperBlock<kBlockBytes> {
  static void read_scales(const Byte* blocks, std::int64_t count, float* to) {
    for (std::int64_t b = 0; b < count; ++b) {
      read_group_scales(blocks + b * kBlockBytes, to + b * SuperBlock<kBlockBytes>::kScales);
    }
  }
};

template <>
struct Format<BlockType::kQ4K> : GroupedBlock<144> {
  static void read(const Byte* block, const float* scales, std::int64_t unit,
                   __m512 (&v)[kVectors]) {
    const Byte* from = block + 16 + unit * 64;
    const __m512 count = counting_from(0.0F);
    TIDEKV_UNROLL
    for (std::int64_t pair = 0; pair < 2; ++pair) {
      const float* scale = scales + 4 * unit + 2 * pair;
      const __m512 low = _mm512_fmsub_ps(count, _mm512_set1_ps(scale[0]), _mm512_set1_ps(scale[8]));
      const __m512 high =
          _mm512_fmsub_ps(count, _mm512_set1_ps(scale[1]), _mm512_set1_ps(scale[9]));
      pick_nibbles(from + 32 * pair, low, high, v[4 * pair], v[4 * pair + 2]);
      pick_nibbles(from + 32 * pair + 16, low, high, v[4 * pair + 1], v[4 * pair + 3]);
    }
  }
};

// Shifts for the two halves of a register, in lanes of 16 bits.
inline __m512i shifts(short left, short right) {
  return _mm512_inserti64x4(_mm512_set1_epi16(left), _mm256_set1_epi16(right), 1);
}

// The low halves of 64 bytes with the bits of `above` on top.
inline __m512i with_bits(__m512i nibbles, __m512i above, short bits) {
  constexpr int kFirstOrSecondAndThird = 0xF8;
  return _mm512_ternarylogic_epi32(_mm512_and_si512(nibbles, _mm512_set1_epi8(0x0F)), above,
                                   _mm512_set1_epi16(bits), kFirstOrSecondAndThird);
}

// 128 numbers of a byte each.
struct Numbers {
  alignas(64) signed char q[128];

  void put(__m512i first, __m512i second) {
    _mm512_store_si512(q, first);
    _mm512_store_si512(q + 64, second);
    keep_in_memory(q);
  }
  __m512 floats(std::int64_t at) const {
    return to_floats(_mm_load_si128(reinterpret_cast<const __m128i*>(q + at)));
  }
};

template <>
struct Format<BlockType::kQ5K> : GroupedBlock<176> {
  static void read(const Byte* block, const float* scales, std::int64_t unit,
                   __m512 (&v)[kVectors]) {
    const __m512i bytes = _mm512_loadu_si512(block + 48 + unit * 64);
    // Groups 0 and 2 of the half take bits 0 and 2, groups 1 and 3 bits 1 and 3.
    const __m512i fifth = _mm512_broadcast_i64x4(
        _mm256_srli_epi16(load_32_bytes(block + 16), static_cast<int>(4 * unit)));
    Numbers numbers;
    numbers.put(
        with_bits(bytes, _mm512_sllv_epi16(fifth, shifts(4, 2)), 0x1010),
        with_bits(_mm512_srli_epi16(bytes, 4), _mm512_sllv_epi16(fifth, shifts(3, 1)), 0x1010));
    TIDEKV_UNROLL
    for (std::int64_t i = 0; i < kVectors; ++i) {
      const std::int64_t g = i / 2;
      const float* scale = scales + 4 * unit + g;
      v[i] = _mm512_fmsub_ps(numbers.floats(g % 2 * 64 + g / 2 * 32 + i % 2 * 16),
                             _mm512_set1_ps(scale[0]), _mm512_set1_ps(scale[8]));
    }
  }
};

template <>
struct Format<BlockType::kQ6K> : SuperBlock<210> {
  static void read_scales(const Byte* blocks, std::int64_t count, float* to) {
    for (std::int64_t b = 0; b < count; ++b) {
      const Byte* block = blocks + b * kBytes;
      short bits = 0;
      __builtin_memcpy(&bits, block + 208, sizeof(bits));
      _mm512_store_ps(to + b * kScales, _mm512_mul_ps(_mm512_cvtph_ps(_mm256_set1_epi16(bits)),
                                                      to_floats(load_16_bytes(block + 192))));
    }
  }

  static void read(const Byte* block, const float* scales, std::int64_t unit,
                   __m512 (&v)[kVectors]) {
    const __m512i bytes = _mm512_loadu_si512(block + unit * 64);
    const __m512i high = _mm512_broadcast_i64x4(load_32_bytes(block + 128 + unit * 32));
    const __m512i zero = _mm512_set1_epi8(32);
    Numbers numbers;
    numbers.put(
        _mm512_sub_epi8(with_bits(bytes, _mm512_sllv_epi16(high, shifts(4, 2)), 0x3030), zero),
        _mm512_sub_epi8(
            with_bits(_mm512_srli_epi16(bytes, 4), _mm512_srlv_epi16(high, shifts(0, 2)), 0x3030),
            zero));
    TIDEKV_UNROLL
    for (std::int64_t i = 0; i < kVectors; ++i) {
      v[i] = _mm512_mul_ps(numbers.floats(16 * i), _mm512_set1_ps(scales[8 * unit + i]));
    }
  }
};

template <BlockType kType>
void expand_row(const Byte* row, std::int64_t first, std::int64_t n, float* to) {
  using Block = Format<kType>;
  constexpr std::int64_t kUnitLen = Block::kVectors * kLanes;
  alignas(64) float scales[kScaleFloats];
  for (std::int64_t i = 0; i < n; i += kUnitLen) {
    const std::int64_t unit = (first + i) / kUnitLen;
    const Byte* block = row + unit / Block::kUnits * Block::kBytes;
    if constexpr (Block::kUnits == 1) {
      Block::read_scales_alone(block, scales);
    } else {
      Block::read_scales(block, 1, scales);
    }
    __m512 v[Block::kVectors];
    Block::read(block, scales, unit % Block::kUnits, v);
    TIDEKV_UNROLL
    for (int j = 0; j < Block::kVectors; ++j) {
      _mm512_storeu_ps(to + i + j * kLanes, v[j]);
    }
  }
}

// How far ahead of its use memory is asked for: measured, short of it the rows wait.
constexpr std::int64_t kPrefetchBytes = 16384;

// Vector j of the unit goes into sum (kFirst + j) % 4.
template <BlockType kType, int kUnit, int kFirst>
inline void add_unit(const Byte* block, const float* scales, const float* a,
                     __m512 (&sums)[kSums]) {
  using Block = Format<kType>;
  __m512 v[Block::kVectors];
  Block::read(block, scales, kUnit, v);
  TIDEKV_UNROLL
  for (int j = 0; j < Block::kVectors; ++j) {
    const int to = (kFirst + j) % kSums;
    sums[to] = _mm512_fmadd_ps(v[j], _mm512_loadu_ps(a + j * kLanes), sums[to]);
  }
}

// Two blocks of 32, or one of 256.
template <BlockType kType>
struct Step {
  using Block = Format<kType>;
  static constexpr std::int64_t kLen = std::int64_t{2} * Block::kVectors * kLanes;
  static constexpr std::int64_t kBytes = 2 / Block::kUnits * Block::kBytes;
  static constexpr std::int64_t kScales = 2 / Block::kUnits * Block::kScales;

  static void add(const Byte* row, const float* scales, const float* a, __m512 (&sums)[kSums]) {
    add_unit<kType, 0, 0>(row, scales, a, sums);
    if constexpr (Block::kUnits == 2) {
      add_unit<kType, 1, 0>(row, scales, a + kLen / 2, sums);
    } else {
      add_unit<kType, 0, 2>(row + Block::kBytes, scales + Block::kScales, a + kLen / 2, sums);
    }
  }
};

// Asks for bytes that are needed soon. An address past the end of memory is no error.
template <std::int64_t kBytes>
inline void prefetch(const Byte* from) {
  TIDEKV_UNROLL
  for (std::int64_t i = 0; i < kBytes; i += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(from) + i, _MM_HINT_T0);
  }
}

// kRows rows side by side, each by the same operations as alone: the sums of one row wait for one
// another, and adding up their lanes takes as long as a short row.
template <BlockType kType, int kRows>
__m128 dot_rows(const Byte* row, std::int64_t stride_bytes, std::int64_t n, const float* a) {
  using Step = Step<kType>;
  constexpr std::int64_t kBlockLen = Step::kLen * Step::Block::kUnits / 2;
  alignas(64) float scales[kRows][kScaleFloats];
  __m512 sums[kRows][kSums];
  TIDEKV_UNROLL
  for (int r = 0; r < kRows; ++r) {
    Step::Block::read_scales(row + r * stride_bytes, n / kBlockLen, scales[r]);
    sums[r][0] = sums[r][1] = sums[r][2] = sums[r][3] = _mm512_setzero_ps();
  }
  std::int64_t i = 0;
  std::int64_t scale = 0;
  for (; i + Step::kLen <= n; i += Step::kLen) {
    TIDEKV_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Byte* at = row + r * stride_bytes;
      prefetch<Step::kBytes>(at + kPrefetchBytes);
      Step::add(at, scales[r] + scale, a + i, sums[r]);
    }
    row += Step::kBytes;
    scale += Step::kScales;
  }
  if constexpr (Step::Block::kUnits == 1) {
    if (i < n) {
      TIDEKV_UNROLL
      for (int r = 0; r < kRows; ++r) {
        add_unit<kType, 0, 0>(row + r * stride_bytes, scales[r] + scale, a + i, sums[r]);
      }
    }
  }
  return sums_of_rows<kRows>(sums);
}

}  // namespace

void expand(const void* row, BlockType type, std::int64_t first, std::int64_t n, float* to) {
  with_block_type(type, [&]<BlockType kType>(BlockTag<kType>) {
    expand_row<kType>(static_cast<const Byte*>(row), first, n, to);
  });
}

void block_dots(const BlockRows& w, std::int64_t n, const float* a, Start start, float* sums) {
  with_block_type(w.type, [&]<BlockType kType>(BlockTag<kType>) {
    const auto* row = static_cast<const Byte*>(w.data);
    std::int64_t r = 0;
    for (; r + kRowsAtOnce <= w.rows; r += kRowsAtOnce) {
      store_sums(dot_rows<kType, kRowsAtOnce>(row + r * w.stride_bytes, w.stride_bytes, n, a),
                 kRowsAtOnce, start, sums + r);
    }
    for (; r < w.rows; ++r) {
      store_sums(dot_rows<kType, 1>(row + r * w.stride_bytes, w.stride_bytes, n, a), 1, start,
                 sums + r);
    }
  });
}

}  // namespace tidekv::cpu::avx512
