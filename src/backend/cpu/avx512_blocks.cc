// Block-quantised rows in AVX-512.
//
// An element is scale * q, or scale * q plus a minimum. The product is exact in f32 (an f16 has 11
// significant bits, scales of groups at most 8, q at most 8, and never all at once), so a fused
// multiply-add gives the bits of a product and a sum. Numbers of four bits pick from a table of
// their 16 values, which the lanes of one register hold.
#include "backend/cpu/avx512_blocks.h"

#include "backend/cpu/avx512_vectors.h"

namespace tidekv::cpu::avx512 {
namespace {

using Byte = unsigned char;

// One f16 in all lanes.
inline __m512 broadcast_f16(const Byte* at) {
  short bits = 0;
  __builtin_memcpy(&bits, at, sizeof(bits));
  return _mm512_cvtph_ps(_mm256_set1_epi16(bits));
}

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

// How a block is laid out, its size in elements and bytes, and how one unit of it (a block of 32, a
// half of a block of 256) becomes vectors. portable_blocks.cc describes the bytes.
template <BlockType kType>
struct Format;

template <std::int64_t kBlockBytes>
struct SmallBlock {
  static constexpr std::int64_t kBytes = kBlockBytes;
  static constexpr int kUnits = 1;
  static constexpr int kVectors = 2;  // of a unit
};

template <std::int64_t kBlockBytes>
struct SuperBlock {
  static constexpr std::int64_t kBytes = kBlockBytes;
  static constexpr int kUnits = 2;
  static constexpr int kVectors = 8;
};

template <>
struct Format<BlockType::kQ80> : SmallBlock<34> {
  static void read(const Byte* block, int /*unit*/, __m512 (&v)[kVectors]) {
    const __m512 scale = broadcast_f16(block);
    v[0] = _mm512_mul_ps(scale, to_floats(load_16_bytes(block + 2)));
    v[1] = _mm512_mul_ps(scale, to_floats(load_16_bytes(block + 18)));
  }
};

template <>
struct Format<BlockType::kQ40> : SmallBlock<18> {
  static void read(const Byte* block, int /*unit*/, __m512 (&v)[kVectors]) {
    const __m512 table = _mm512_mul_ps(broadcast_f16(block), counting_from(-8.0F));
    pick_nibbles(block + 2, table, table, v[0], v[1]);
  }
};

template <>
struct Format<BlockType::kQ41> : SmallBlock<20> {
  static void read(const Byte* block, int /*unit*/, __m512 (&v)[kVectors]) {
    const __m512 table =
        _mm512_fmadd_ps(broadcast_f16(block), counting_from(0.0F), broadcast_f16(block + 2));
    pick_nibbles(block + 4, table, table, v[0], v[1]);
  }
};

template <>
struct Format<BlockType::kQ50> : SmallBlock<22> {
  static void read(const Byte* block, int /*unit*/, __m512 (&v)[kVectors]) {
    const __m256i nibbles = split_nibbles(block + 6);
    // Without the fifth bit it is q - 16: the bits above the fourth are ones.
    const __m256i q = _mm256_mask_blend_epi8(
        load_mask(block + 2), _mm256_or_si256(nibbles, _mm256_set1_epi8(-16)), nibbles);
    const __m512 scale = broadcast_f16(block);
    v[0] = _mm512_mul_ps(scale, to_floats(_mm256_castsi256_si128(q)));
    v[1] = _mm512_mul_ps(scale, to_floats(_mm256_extracti128_si256(q, 1)));
  }
};

template <>
struct Format<BlockType::kQ51> : SmallBlock<24> {
  static void read(const Byte* block, int /*unit*/, __m512 (&v)[kVectors]) {
    const __m256i nibbles = split_nibbles(block + 8);
    const __m256i q = _mm256_mask_blend_epi8(load_mask(block + 4), nibbles,
                                             _mm256_or_si256(nibbles, _mm256_set1_epi8(16)));
    const __m512 scale = broadcast_f16(block);
    const __m512 min = broadcast_f16(block + 2);
    v[0] = _mm512_fmadd_ps(scale, to_floats(_mm256_castsi256_si128(q)), min);
    v[1] = _mm512_fmadd_ps(scale, to_floats(_mm256_extracti128_si256(q, 1)), min);
  }
};

// Scales of the four groups of half a kQ4K or kQ5K block, then their minima.
struct GroupScales {
  alignas(32) float of[8];

  GroupScales(const Byte* block, int unit) {
    unsigned packed[3];
    __builtin_memcpy(packed, block + 4, sizeof(packed));
    unsigned scales = packed[0] & 0x3F3F3F3FU;
    unsigned minima = packed[1] & 0x3F3F3F3FU;
    if (unit == 1) {
      scales = (packed[2] & 0x0F0F0F0FU) | (packed[0] >> 2 & 0x30303030U);
      minima = (packed[2] >> 4 & 0x0F0F0F0FU) | (packed[1] >> 2 & 0x30303030U);
    }
    const __m128i bytes = _mm_set_epi32(0, 0, static_cast<int>(minima), static_cast<int>(scales));
    int both = 0;
    __builtin_memcpy(&both, block, sizeof(both));
    const __m256 of_block = _mm512_castps512_ps256(_mm512_cvtph_ps(_mm256_set1_epi32(both)));
    const __m256 spread =
        _mm256_permutevar8x32_ps(of_block, _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
    _mm256_store_ps(of, _mm256_mul_ps(spread, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes))));
  }
  __m512 scale(int group) const { return _mm512_set1_ps(of[group]); }
  __m512 min(int group) const { return _mm512_set1_ps(of[4 + group]); }
};

template <>
struct Format<BlockType::kQ4K> : SuperBlock<144> {
  static void read(const Byte* block, int unit, __m512 (&v)[kVectors]) {
    const GroupScales scales(block, unit);
    const Byte* from = block + 16 + unit * 64;
    const __m512 count = counting_from(0.0F);
    TIDEKV_UNROLL
    for (int pair = 0; pair < 2; ++pair) {
      const int g = 2 * pair;
      const __m512 low = _mm512_fmsub_ps(scales.scale(g), count, scales.min(g));
      const __m512 high = _mm512_fmsub_ps(scales.scale(g + 1), count, scales.min(g + 1));
      pick_nibbles(from + 32 * pair, low, high, v[4 * pair], v[4 * pair + 2]);
      pick_nibbles(from + 32 * pair + 16, low, high, v[4 * pair + 1], v[4 * pair + 3]);
    }
  }
};

// Shifts for the two halves of a register, in lanes of 16 bits.
inline __m512i shifts(short left, short right) {
  return _mm512_inserti64x4(_mm512_set1_epi16(left), _mm256_set1_epi16(right), 1);
}

// The low halves of 64 bytes with the bits of `above` on top, or the high halves.
inline __m512i with_bits(__m512i nibbles, __m512i above, short bits) {
  constexpr int kFirstOrSecondAndThird = 0xF8;  // a | (b & c)
  return _mm512_ternarylogic_epi32(_mm512_and_si512(nibbles, _mm512_set1_epi8(0x0F)), above,
                                   _mm512_set1_epi16(bits), kFirstOrSecondAndThird);
}

template <>
struct Format<BlockType::kQ5K> : SuperBlock<176> {
  static void read(const Byte* block, int unit, __m512 (&v)[kVectors]) {
    const GroupScales scales(block, unit);
    const __m512i bytes = _mm512_loadu_si512(block + 48 + unit * 64);
    // Groups 0 and 2 of the half take bits 0 and 2, groups 1 and 3 bits 1 and 3.
    const __m512i fifth =
        _mm512_broadcast_i64x4(_mm256_srli_epi16(load_32_bytes(block + 16), 4 * unit));
    alignas(64) Byte q[128];
    _mm512_store_si512(q, with_bits(bytes, _mm512_sllv_epi16(fifth, shifts(4, 2)), 0x1010));
    _mm512_store_si512(q + 64, with_bits(_mm512_srli_epi16(bytes, 4),
                                         _mm512_sllv_epi16(fifth, shifts(3, 1)), 0x1010));
    TIDEKV_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const int g = i / 2;
      const Byte* from = q + g % 2 * 64 + g / 2 * 32 + i % 2 * 16;
      v[i] = _mm512_fmsub_ps(scales.scale(g), to_floats(load_16_bytes(from)), scales.min(g));
    }
  }
};

template <>
struct Format<BlockType::kQ6K> : SuperBlock<210> {
  static void read(const Byte* block, int unit, __m512 (&v)[kVectors]) {
    const __m512i bytes = _mm512_loadu_si512(block + unit * 64);
    const __m512i high = _mm512_broadcast_i64x4(load_32_bytes(block + 128 + unit * 32));
    const __m512i zero = _mm512_set1_epi8(32);
    alignas(64) signed char q[128];
    const __m512i left = with_bits(bytes, _mm512_sllv_epi16(high, shifts(4, 2)), 0x3030);
    const __m512i right =
        with_bits(_mm512_srli_epi16(bytes, 4), _mm512_srlv_epi16(high, shifts(0, 2)), 0x3030);
    _mm512_store_si512(q, _mm512_sub_epi8(left, zero));
    _mm512_store_si512(q + 64, _mm512_sub_epi8(right, zero));
    alignas(32) float scales[kVectors];
    const __m128i of_vectors =
        _mm_loadl_epi64(reinterpret_cast<const __m128i*>(block + 192 + unit * 8));
    _mm256_store_ps(scales, _mm256_mul_ps(_mm512_castps512_ps256(broadcast_f16(block + 208)),
                                          _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(of_vectors))));
    TIDEKV_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      const __m128i numbers = _mm_load_si128(reinterpret_cast<const __m128i*>(q + 16 * i));
      v[i] = _mm512_mul_ps(_mm512_set1_ps(scales[i]), to_floats(numbers));
    }
  }
};

template <BlockType kType>
struct Constant {};

template <typename Body>
inline void with_block_type(BlockType type, const Body& body) {
  switch (type) {
    case BlockType::kQ80:
      return body(Constant<BlockType::kQ80>{});
    case BlockType::kQ40:
      return body(Constant<BlockType::kQ40>{});
    case BlockType::kQ41:
      return body(Constant<BlockType::kQ41>{});
    case BlockType::kQ50:
      return body(Constant<BlockType::kQ50>{});
    case BlockType::kQ51:
      return body(Constant<BlockType::kQ51>{});
    case BlockType::kQ4K:
      return body(Constant<BlockType::kQ4K>{});
    case BlockType::kQ5K:
      return body(Constant<BlockType::kQ5K>{});
    case BlockType::kQ6K:
      return body(Constant<BlockType::kQ6K>{});
  }
}

template <BlockType kType>
void expand_row(const Byte* row, std::int64_t first, std::int64_t n, float* to) {
  using Block = Format<kType>;
  constexpr std::int64_t kUnitLen = Block::kVectors * kLanes;
  for (std::int64_t i = 0; i < n; i += kUnitLen) {
    const std::int64_t unit = (first + i) / kUnitLen;
    const Byte* block = row + unit / Block::kUnits * Block::kBytes;
    __m512 v[Block::kVectors];
    Block::read(block, static_cast<int>(unit % Block::kUnits), v);
    TIDEKV_UNROLL
    for (int j = 0; j < Block::kVectors; ++j) {
      _mm512_storeu_ps(to + i + j * kLanes, v[j]);
    }
  }
}

constexpr int kSums = 4;

// Vector j of the row goes into sum j % 4.
template <BlockType kType, int kUnit, int kFirst>
inline void add_unit(const Byte* block, const float* a, __m512 (&sums)[kSums]) {
  using Block = Format<kType>;
  __m512 v[Block::kVectors];
  Block::read(block, kUnit, v);
  TIDEKV_UNROLL
  for (int j = 0; j < Block::kVectors; ++j) {
    const int to = (kFirst + j) % kSums;
    sums[to] = _mm512_fmadd_ps(v[j], _mm512_loadu_ps(a + j * kLanes), sums[to]);
  }
}

template <BlockType kType>
float dot(const Byte* row, std::int64_t n, const float* a) {
  using Block = Format<kType>;
  constexpr std::int64_t kUnitLen = Block::kVectors * kLanes;
  __m512 sums[kSums] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                        _mm512_setzero_ps()};
  std::int64_t i = 0;
  for (; i + 2 * kUnitLen <= n; i += 2 * kUnitLen) {
    if constexpr (Block::kUnits == 2) {
      add_unit<kType, 0, 0>(row, a + i, sums);
      add_unit<kType, 1, 0>(row, a + i + kUnitLen, sums);
      row += Block::kBytes;
    } else {
      add_unit<kType, 0, 0>(row, a + i, sums);
      add_unit<kType, 0, 2>(row + Block::kBytes, a + i + kUnitLen, sums);
      row += 2 * Block::kBytes;
    }
  }
  if constexpr (Block::kUnits == 1) {
    if (i < n) {
      add_unit<kType, 0, 0>(row, a + i, sums);
    }
  }
  return _mm512_reduce_add_ps(
      _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

}  // namespace

void expand(const void* row, BlockType type, std::int64_t first, std::int64_t n, float* to) {
  with_block_type(type, [&]<BlockType kType>(Constant<kType>) {
    expand_row<kType>(static_cast<const Byte*>(row), first, n, to);
  });
}

void dots(const BlockRows& w, std::int64_t n, const float* a, Start start, float* sums) {
  with_block_type(w.type, [&]<BlockType kType>(Constant<kType>) {
    const auto* row = static_cast<const Byte*>(w.data);
    for (std::int64_t r = 0; r < w.rows; ++r) {
      const float sum = dot<kType>(row, n, a);
      sums[r] = start == Start::kZero ? sum : sums[r] + sum;
      row += w.stride_bytes;
    }
  });
}

}  // namespace tidekv::cpu::avx512
