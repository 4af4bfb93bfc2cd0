// Block-quantised rows in AVX2.
//
// An element is scale * q, or scale * q plus a minimum. The product is exact in f32 (11 significant
// bits of an f16, at most 7 of a group's scale and 7 of q, 23 together), so a fused multiply-add
// gives the bits of a product and a sum. A unit is a group of 32: its numbers are taken apart as
// bytes, all at once, and become floats on their way back from memory.
#include "backend/cpu/avx2_blocks.h"

#include "backend/cpu/block_type_switch.h"
#include "backend/cpu/vector_blocks.h"

namespace tidekv::cpu {
namespace {

constexpr int kUnits = 8;        // of a block of 256: its groups
constexpr int kUnitVectors = 4;  // of a group

inline __m128i load_16_bytes(const Byte* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

inline __m256i load_32_bytes(const Byte* at) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
}

// Eight signed bytes.
inline Vector load_i8(const void* at) {
  const __m128i bytes = _mm_loadl_epi64(static_cast<const __m128i*>(at));
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
}

// 16 bytes' low halves, then their high ones.
inline __m256i split_nibbles(const Byte* from) {
  const __m128i bytes = load_16_bytes(from);
  const __m256i both = _mm256_set_m128i(_mm_srli_epi16(bytes, 4), bytes);
  return _mm256_and_si256(both, _mm256_set1_epi8(0x0F));
}

// `count` bits of each of 32 bytes, from bit `first` on, moved to bit `to`.
template <int kCount>
inline __m256i bits_at(const Byte* from, std::int64_t first, int to) {
  const __m256i low = _mm256_srli_epi16(load_32_bytes(from), static_cast<int>(first));
  const __m256i bits = _mm256_and_si256(low, _mm256_set1_epi8((1 << kCount) - 1));
  return _mm256_slli_epi16(bits, to);
}

// Of 16 bytes the low halves, then the high ones, as whole numbers.
inline void whole_nibbles(const Byte* from, __m256i (&q)[kUnitVectors]) {
  TIDEKV_UNROLL
  for (int j = 0; j < 2; ++j) {
    const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from + j * kLanes));
    const __m256i bytes = _mm256_cvtepu8_epi32(eight);
    q[j] = _mm256_and_si256(bytes, _mm256_set1_epi32(0x0F));
    q[j + 2] = _mm256_srli_epi32(bytes, 4);
  }
}

// Where bit i of four bytes is 0, byte i is ones.
inline __m256i unset_bits(const Byte* from) {
  int bits = 0;
  __builtin_memcpy(&bits, from, sizeof(bits));
  const __m256i spread = _mm256_shuffle_epi8(
      _mm256_set1_epi32(bits),
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
  const __m256i bit = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201U));
  return _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), _mm256_setzero_si256());
}

// The numbers of a group, signed bytes.
struct Numbers {
  alignas(32) signed char q[32];

  explicit Numbers(__m256i bytes) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(q), bytes);
    keep_in_memory(q);
  }
  Vector floats(int vector) const { return load_i8(q + vector * kLanes); }
};

// v = scale * q.
inline void scale_numbers(const Byte* q, float scale, Vector (&v)[kUnitVectors]) {
  TIDEKV_UNROLL
  for (int j = 0; j < kUnitVectors; ++j) {
    v[j] = _mm256_mul_ps(load_i8(q + j * kLanes), _mm256_set1_ps(scale));
  }
}
inline void scale_numbers(__m256i q, float scale, Vector (&v)[kUnitVectors]) {
  const Numbers numbers(q);
  TIDEKV_UNROLL
  for (int j = 0; j < kUnitVectors; ++j) {
    v[j] = _mm256_mul_ps(numbers.floats(j), _mm256_set1_ps(scale));
  }
}

// v = scale * q + min, or - min.
inline void add_minimum(__m256i q, float scale, float min, Vector (&v)[kUnitVectors]) {
  const Numbers numbers(q);
  TIDEKV_UNROLL
  for (int j = 0; j < kUnitVectors; ++j) {
    v[j] = _mm256_fmadd_ps(numbers.floats(j), _mm256_set1_ps(scale), _mm256_set1_ps(min));
  }
}
inline void subtract_minimum(__m256i q, float scale, float min, Vector (&v)[kUnitVectors]) {
  const Numbers numbers(q);
  TIDEKV_UNROLL
  for (int j = 0; j < kUnitVectors; ++j) {
    v[j] = _mm256_fmsub_ps(numbers.floats(j), _mm256_set1_ps(scale), _mm256_set1_ps(min));
  }
}

template <>
struct Format<BlockType::kQ80> : SmallBlock<34, 1> {
  static void read(const Byte* block, const float* scales, std::int64_t /*unit*/,
                   Vector (&v)[kVectors]) {
    scale_numbers(block + 2, scales[0], v);
  }
};

template <>
struct Format<BlockType::kQ40> : SmallBlock<18, 1> {
  static void read(const Byte* block, const float* scales, std::int64_t /*unit*/,
                   Vector (&v)[kVectors]) {
    __m256i q[kVectors];
    whole_nibbles(block + 2, q);
    TIDEKV_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      const __m256i centred = _mm256_sub_epi32(q[j], _mm256_set1_epi32(8));
      v[j] = _mm256_mul_ps(_mm256_cvtepi32_ps(centred), _mm256_set1_ps(scales[0]));
    }
  }
};

template <>
struct Format<BlockType::kQ41> : SmallBlock<20, 2> {
  static void read(const Byte* block, const float* scales, std::int64_t /*unit*/,
                   Vector (&v)[kVectors]) {
    __m256i q[kVectors];
    whole_nibbles(block + 4, q);
    TIDEKV_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      v[j] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(q[j]), _mm256_set1_ps(scales[0]),
                             _mm256_set1_ps(scales[1]));
    }
  }
};

template <>
struct Format<BlockType::kQ50> : SmallBlock<22, 1> {
  static void read(const Byte* block, const float* scales, std::int64_t /*unit*/,
                   Vector (&v)[kVectors]) {
    // Without the fifth bit it is q - 16: the bits above the fourth are ones.
    const __m256i above = _mm256_and_si256(unset_bits(block + 2), _mm256_set1_epi8(-16));
    scale_numbers(_mm256_or_si256(split_nibbles(block + 6), above), scales[0], v);
  }
};

template <>
struct Format<BlockType::kQ51> : SmallBlock<24, 2> {
  static void read(const Byte* block, const float* scales, std::int64_t /*unit*/,
                   Vector (&v)[kVectors]) {
    const __m256i fifth = _mm256_andnot_si256(unset_bits(block + 4), _mm256_set1_epi8(16));
    add_minimum(_mm256_or_si256(split_nibbles(block + 8), fifth), scales[0], scales[1], v);
  }
};

template <std::int64_t kBlockBytes>
struct GroupedBlock : SuperBlock<kBlockBytes, kUnits> {
  static void read_scales(const Byte* blocks, std::int64_t count, float* to) {
    for (std::int64_t b = 0; b < count; ++b) {
      const Byte* block = blocks + b * kBlockBytes;
      int both = 0;
      __builtin_memcpy(&both, block, sizeof(both));
      const __m128 of_block = _mm_cvtph_ps(_mm_cvtsi32_si128(both));
      const __m128i bytes = group_scale_bytes(block);
      const Vector scales = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
      const Vector minima = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)));
      float* at = to + b * GroupedBlock::kScales;
      _mm256_store_ps(at, _mm256_mul_ps(scales, _mm256_broadcastss_ps(of_block)));
      _mm256_store_ps(at + kLanes,
                      _mm256_mul_ps(minima, _mm256_broadcastss_ps(_mm_movehdup_ps(of_block))));
    }
  }
};

template <>
struct Format<BlockType::kQ4K> : GroupedBlock<144> {
  static void read(const Byte* block, const float* scales, std::int64_t unit,
                   Vector (&v)[kVectors]) {
    const __m256i q = bits_at<4>(block + 16 + unit / 2 * 32, unit % 2 * 4, 0);
    subtract_minimum(q, scales[unit], scales[8 + unit], v);
  }
};

template <>
struct Format<BlockType::kQ5K> : GroupedBlock<176> {
  static void read(const Byte* block, const float* scales, std::int64_t unit,
                   Vector (&v)[kVectors]) {
    const __m256i low = bits_at<4>(block + 48 + unit / 2 * 32, unit % 2 * 4, 0);
    const __m256i fifth = bits_at<1>(block + 16, unit, 4);
    subtract_minimum(_mm256_or_si256(low, fifth), scales[unit], scales[8 + unit], v);
  }
};

template <>
struct Format<BlockType::kQ6K> : SuperBlock<210, kUnits> {
  static void read_scales(const Byte* blocks, std::int64_t count, float* to) {
    for (std::int64_t b = 0; b < count; ++b) {
      const Byte* block = blocks + b * kBytes;
      short bits = 0;
      __builtin_memcpy(&bits, block + 208, sizeof(bits));
      const Vector of_block = _mm256_cvtph_ps(_mm_set1_epi16(bits));
      float* at = to + b * kScales;
      _mm256_store_ps(at, _mm256_mul_ps(of_block, load_i8(block + 192)));
      _mm256_store_ps(at + kLanes, _mm256_mul_ps(of_block, load_i8(block + 200)));
    }
  }

  // A half is four groups: the low halves of 64 bytes, then their high ones.
  static void read(const Byte* block, const float* scales, std::int64_t unit,
                   Vector (&v)[kVectors]) {
    const std::int64_t half = unit / 4;
    const std::int64_t group = unit % 4;
    const __m256i low = bits_at<4>(block + half * 64 + group % 2 * 32, group / 2 * 4, 0);
    const __m256i high = bits_at<2>(block + 128 + half * 32, 2 * group, 4);
    const Numbers numbers(_mm256_sub_epi8(_mm256_or_si256(low, high), _mm256_set1_epi8(32)));
    TIDEKV_UNROLL
    for (int j = 0; j < kUnitVectors; ++j) {  // a scale for 16
      v[j] = _mm256_mul_ps(numbers.floats(j), _mm256_set1_ps(scales[2 * unit + j / 2]));
    }
  }
};

}  // namespace

namespace avx2 {

void expand(const void* row, BlockType type, std::int64_t first, std::int64_t n, float* to) {
  with_block_type(type, [&]<BlockType kType>(BlockTag<kType>) {
    expand_row<kType>(static_cast<const Byte*>(row), first, n, to);
  });
}

void block_dots(const BlockRows& w, std::int64_t n, const float* a, Start start, float* sums) {
  with_block_type(
      w.type, [&]<BlockType kType>(BlockTag<kType>) { dot_blocks<kType>(w, n, a, start, sums); });
}

}  // namespace avx2
}  // namespace tidekv::cpu
