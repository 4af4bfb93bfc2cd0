// Vectors of 8 floats: what the vector kernels (vectors.h) ask of AVX2, FMA and F16C.
//
// Only for sources compiled with them; empty elsewhere. Everything has internal linkage (kernels.h
// says why). AVX2 has no masks for numbers of 16 bits: the last few of a row go through the stack.
#pragma once

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__) && !defined(__AVX512F__)

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels.h"
#include "backend/cpu/vector_unroll.h"

namespace tidekv::cpu {
namespace {

using Vector = __m256;
constexpr std::int64_t kLanes = 8;
// The first lanes of a vector, as their number.
using LaneMask = int;
constexpr LaneMask kAllLanes = 8;

// The register tile of a product, in rows; it is two vectors wide. 12 of 16 registers are sums.
constexpr int kTileRows = 6;
// Rows of which four sums each stay in registers side by side.
constexpr int kRowsTogether = 2;

// Lanes [0, count); none if count is negative.
inline LaneMask first_lanes(std::int64_t count) {
  if (count >= kLanes) {
    return kAllLanes;
  }
  return count <= 0 ? 0 : static_cast<LaneMask>(count);
}

inline __m256i bits_of(LaneMask mask) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(mask), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline Vector zeros() { return _mm256_setzero_ps(); }
inline Vector all_lanes(float value) { return _mm256_set1_ps(value); }
inline Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
inline Vector subtract(Vector a, Vector b) { return _mm256_sub_ps(a, b); }
inline Vector multiply(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
inline Vector divide(Vector a, Vector b) { return _mm256_div_ps(a, b); }
// a * b + c, a * b - c and c - a * b, rounded once.
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
inline Vector multiply_subtract(Vector a, Vector b, Vector c) { return _mm256_fmsub_ps(a, b, c); }
inline Vector subtract_product(Vector a, Vector b, Vector c) { return _mm256_fnmadd_ps(a, b, c); }
// a[0] * b + c in every lane.
inline Vector multiply_add_lane(const float* a, Vector b, Vector c) {
  return multiply_add(all_lanes(*a), b, c);
}
// b where a lane is NaN.
inline Vector larger(Vector a, Vector b) { return _mm256_max_ps(a, b); }
inline Vector smaller(Vector a, Vector b) { return _mm256_min_ps(a, b); }
// `first` in the lanes of the mask, `other` in the rest.
inline Vector pick(LaneMask mask, Vector first, Vector other) {
  return mask == kAllLanes ? first
                           : _mm256_blendv_ps(other, first, _mm256_castsi256_ps(bits_of(mask)));
}

// x * 2^n rounded once, n whole and -150 <= n <= 128: by two powers, of which the first is exact.
inline Vector times_power_of_two(Vector x, Vector n) {
  const __m256i exponent = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(exponent, 1);
  const __m256i one = _mm256_set1_epi32(127);  // the exponent's bits of 1
  const __m256i first = _mm256_slli_epi32(_mm256_add_epi32(half, one), 23);
  const __m256i second =
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_sub_epi32(exponent, half), one), 23);
  return _mm256_mul_ps(_mm256_mul_ps(x, _mm256_castsi256_ps(first)), _mm256_castsi256_ps(second));
}

// The sums of four quarters of the lanes; sums_of goes on.
inline __m128 add_quarters(Vector x) {
  return _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
}

// In a fixed tree.
inline float sum_of_lanes(Vector x) {
  const __m128 quarter = add_quarters(x);
  const __m128 pair = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}
inline float largest_of_lanes(Vector x) {
  const __m128 quarter = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  const __m128 pair = _mm_max_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return _mm_cvtss_f32(_mm_max_ss(pair, _mm_movehdup_ps(pair)));
}

inline __m128i load_8_halves(const void* at, LaneMask mask) {
  if (mask == kAllLanes) {
    return _mm_loadu_si128(static_cast<const __m128i*>(at));
  }
  __m128i halves = _mm_setzero_si128();
  __builtin_memcpy(&halves, at, static_cast<std::size_t>(mask) * 2);
  return halves;
}

inline Vector load_f32(const void* at, LaneMask mask) {
  const auto* from = static_cast<const float*>(at);
  return mask == kAllLanes ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, bits_of(mask));
}
inline Vector load_f16(const void* at, LaneMask mask) {
  return _mm256_cvtph_ps(load_8_halves(at, mask));
}
inline __m128 widen_4_f16(__m128i halves) { return _mm_cvtph_ps(halves); }
// The first bytes, one to a lane.
inline Vector from_bytes(__m128i bytes) { return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)); }
inline Vector load_bf16(const void* at, LaneMask mask) {
  const __m256i bits = _mm256_cvtepu16_epi32(load_8_halves(at, mask));
  return _mm256_castsi256_ps(_mm256_slli_epi32(bits, 16));
}
// As many numbers of 16 bits as a vector has bytes for, two to a lane.
inline Vector load_pairs(const void* at, std::int64_t count) {
  if (count >= 2 * kLanes) {
    return _mm256_loadu_ps(static_cast<const float*>(at));
  }
  Vector pairs = _mm256_setzero_ps();
  __builtin_memcpy(&pairs, at, static_cast<std::size_t>(count) * 2);
  return pairs;
}
// The numbers at even and at odd places of BF16 pairs.
inline Vector first_of_pairs(Vector x) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x), 16));
}
inline Vector second_of_pairs(Vector x) {
  return _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(-0x10000)));
}

inline void store_f32(Vector value, void* at, LaneMask mask) {
  auto* to = static_cast<float*>(at);
  if (mask == kAllLanes) {
    _mm256_storeu_ps(to, value);
  } else {
    _mm256_maskstore_ps(to, bits_of(mask), value);
  }
}
// Round to nearest, ties to even; a NaN stays a quiet NaN.
inline void store_bf16(Vector value, void* at, LaneMask mask) {
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
  const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
  const __m256i wide = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, is_nan), 16);
  const __m128i narrow =
      _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
  if (mask == kAllLanes) {
    _mm_storeu_si128(static_cast<__m128i*>(at), narrow);
  } else {
    __builtin_memcpy(at, &narrow, static_cast<std::size_t>(mask) * 2);
  }
}

// Rows become columns: afterwards lane r of x[c] is what lane c of x[r] was.
inline void transpose(Vector (&x)[kLanes]) {
  __m256 quads[kLanes];  // quads[4 b + c]: column c of both 4x4 blocks of rows 4 b ... 4 b + 3
  TIDEKV_UNROLL
  for (int i = 0; i < kLanes; i += 4) {
    const __m256 low0 = _mm256_unpacklo_ps(x[i], x[i + 1]);
    const __m256 high0 = _mm256_unpackhi_ps(x[i], x[i + 1]);
    const __m256 low1 = _mm256_unpacklo_ps(x[i + 2], x[i + 3]);
    const __m256 high1 = _mm256_unpackhi_ps(x[i + 2], x[i + 3]);
    quads[i] = _mm256_shuffle_ps(low0, low1, 0x44);
    quads[i + 1] = _mm256_shuffle_ps(low0, low1, 0xEE);
    quads[i + 2] = _mm256_shuffle_ps(high0, high1, 0x44);
    quads[i + 3] = _mm256_shuffle_ps(high0, high1, 0xEE);
  }
  TIDEKV_UNROLL
  for (int c = 0; c < 4; ++c) {
    x[c] = _mm256_permute2f128_ps(quads[c], quads[4 + c], 0x20);
    x[4 + c] = _mm256_permute2f128_ps(quads[c], quads[4 + c], 0x31);
  }
}

}  // namespace
}  // namespace tidekv::cpu

#endif
