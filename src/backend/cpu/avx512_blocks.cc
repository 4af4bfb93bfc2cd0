// Block-quantised rows in AVX-512.
//
// An element is scale * q, or scale * q plus a minimum. The product is exact in f32 (11 significant
// bits of an f16, at most 7 of a group's scale and 7 of q, 23 together), so a fused multiply-add
// gives the bits of a product and a sum. Numbers of four bits pick from a table of their 16 values,
// which the lanes of one register hold.
#include "backend/cpu/avx512_blocks.h"

#include "backend/cpu/block_type_switch.h"
#include "backend/cpu/vector_blocks.h"

namespace tidekv::cpu {
namespace {

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

constexpr int kUnits = 2;  // of a block of 256: its halves

// Scales of the eight groups of a kQ4K or kQ5K block, then their minima.
inline void read_group_scales(const Byte* block, float* to) {
  const __m128i bytes = group_scale_bytes(block);
  int both = 0;
  __builtin_memcpy(&both, block, sizeof(both));
  const __m512 of_block = _mm512_cvtph_ps(_mm256_set1_epi32(both));
  const __m512 spread = _mm512_permutexvar_ps(
      _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1), of_block);
  _mm512_store_ps(to, _mm512_mul_ps(spread, _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes))));
}

template <std::int64_t kBlockBytes>
struct GroupedBlock : SuperBlock<kBlockBytes, kUnits> {
  static void read_scales(const Byte* blocks, std::int64_t count, float* to) {
    for (std::int64_t b = 0; b < count; ++b) {
      read_group_scales(blocks + b * kBlockBytes, to + b * GroupedBlock::kScales);
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
struct Format<BlockType::kQ6K> : SuperBlock<210, kUnits> {
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

}  // namespace

namespace avx512 {

void expand(const void* row, BlockType type, std::int64_t first, std::int64_t n, float* to) {
  with_block_type(type, [&]<BlockType kType>(BlockTag<kType>) {
    expand_row<kType>(static_cast<const Byte*>(row), first, n, to);
  });
}

void block_dots(const BlockRows& w, std::int64_t n, const float* a, Start start, float* sums) {
  with_block_type(
      w.type, [&]<BlockType kType>(BlockTag<kType>) { dot_blocks<kType>(w, n, a, start, sums); });
}

}  // namespace avx512
}  // namespace tidekv::cpu
