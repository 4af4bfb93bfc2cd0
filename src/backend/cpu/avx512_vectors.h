// Vectors of 16 floats: what the vector kernels (vectors.h) ask of AVX-512 F, BW, VL and DQ.
//
// Only for sources compiled with it; empty elsewhere. Everything has internal linkage (kernels.h
// says why).
#pragma once

#ifdef __AVX512F__

#include <immintrin.h>

#include <cstdint>

#include "backend/cpu/kernels.h"
#include "backend/cpu/vector_unroll.h"

namespace tidekv::cpu {
namespace {

using Vector = __m512;
constexpr std::int64_t kLanes = 16;
// The first lanes of a vector.
using LaneMask = __mmask16;
constexpr LaneMask kAllLanes = 0xFFFF;

// The register tile of a product, in rows; it is two vectors wide. 24 registers are sums.
constexpr int kTileRows = 12;
// Rows of which four sums each stay in registers side by side.
constexpr int kRowsTogether = 4;

// Lanes [0, count); none if count is negative.
inline LaneMask first_lanes(std::int64_t count) {
  if (count >= kLanes) {
    return kAllLanes;
  }
  return count <= 0 ? __mmask16{0} : static_cast<__mmask16>((1U << count) - 1U);
}

// The same of 32 lanes of 16 bits.
inline __mmask32 first_halves(std::int64_t count) {
  if (count >= 2 * kLanes) {
    return 0xFFFFFFFFU;
  }
  return count <= 0 ? 0U : (1U << static_cast<unsigned>(count)) - 1U;
}

inline Vector zeros() { return _mm512_setzero_ps(); }
inline Vector all_lanes(float value) { return _mm512_set1_ps(value); }
inline Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
inline Vector subtract(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
inline Vector multiply(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
inline Vector divide(Vector a, Vector b) { return _mm512_div_ps(a, b); }
// a * b + c, a * b - c and c - a * b, rounded once.
inline Vector multiply_add(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
inline Vector multiply_subtract(Vector a, Vector b, Vector c) { return _mm512_fmsub_ps(a, b, c); }
inline Vector subtract_product(Vector a, Vector b, Vector c) { return _mm512_fnmadd_ps(a, b, c); }
// a[0] * b + c in every lane. The instruction reads a[0] itself: left to it, the compiler spends
// one more on the load.
inline Vector multiply_add_lane(const float* a, Vector b, Vector c) {
  asm("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(c) : "v"(b), "m"(*a));
  return c;
}
// b where a lane is NaN.
inline Vector larger(Vector a, Vector b) { return _mm512_max_ps(a, b); }
inline Vector smaller(Vector a, Vector b) { return _mm512_min_ps(a, b); }
// `first` in the lanes of the mask, `other` in the rest.
inline Vector pick(LaneMask mask, Vector first, Vector other) {
  return _mm512_mask_mov_ps(other, mask, first);
}

// x * 2^n rounded once, n whole.
inline Vector times_power_of_two(Vector x, Vector n) { return _mm512_scalef_ps(x, n); }

// In a fixed tree.
inline float sum_of_lanes(Vector x) { return _mm512_reduce_add_ps(x); }
inline float largest_of_lanes(Vector x) { return _mm512_reduce_max_ps(x); }

// The sums of four quarters of the lanes; sums_of goes on.
inline __m128 add_quarters(Vector x) {
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
  return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

inline Vector load_f32(const void* at, LaneMask mask) { return _mm512_maskz_loadu_ps(mask, at); }
// The first bytes, one to a lane.
inline Vector from_bytes(__m128i bytes) { return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes)); }
inline Vector load_f16(const void* at, LaneMask mask) {
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, at));
}
inline __m128 widen_4_f16(__m128i halves) { return _mm_maskz_cvtph_ps(0x0F, halves); }
inline Vector load_bf16(const void* at, LaneMask mask) {
  const __m512i bits = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, at));
  return _mm512_castsi512_ps(_mm512_slli_epi32(bits, 16));
}
// As many numbers of 16 bits as a vector has bytes for, two to a lane.
inline Vector load_pairs(const void* at, std::int64_t count) {
  return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(first_halves(count), at));
}
// The numbers at even and at odd places of BF16 pairs.
inline Vector first_of_pairs(Vector x) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(x), 16));
}
inline Vector second_of_pairs(Vector x) {
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(-0x10000)));
}

inline void store_f32(Vector value, void* at, LaneMask mask) {
  _mm512_mask_storeu_ps(at, mask, value);
}
// Round to nearest, ties to even; a NaN stays a quiet NaN.
inline void store_bf16(Vector value, void* at, LaneMask mask) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i result = _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x00400000));
  _mm256_mask_storeu_epi16(at, mask, _mm512_cvtepi32_epi16(_mm512_srli_epi32(result, 16)));
}

// Rows become columns: afterwards lane r of x[c] is what lane c of x[r] was.
inline void transpose(Vector (&x)[kLanes]) {
  __m512 pairs[kLanes];
  TIDEKV_UNROLL
  for (int i = 0; i < kLanes; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
    pairs[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
  }
  __m512 quads[kLanes];  // quads[4 b + c]: column c of every 4x4 block of rows 4 b ... 4 b + 3
  TIDEKV_UNROLL
  for (int i = 0; i < kLanes; i += 4) {
    const __m512d low0 = _mm512_castps_pd(pairs[i]);
    const __m512d high0 = _mm512_castps_pd(pairs[i + 1]);
    const __m512d low1 = _mm512_castps_pd(pairs[i + 2]);
    const __m512d high1 = _mm512_castps_pd(pairs[i + 3]);
    quads[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(low0, low1));
    quads[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low0, low1));
    quads[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high0, high1));
    quads[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high0, high1));
  }
  TIDEKV_UNROLL
  for (int c = 0; c < 4; ++c) {
    const __m512 even0 = _mm512_shuffle_f32x4(quads[c], quads[4 + c], 0x88);
    const __m512 odd0 = _mm512_shuffle_f32x4(quads[c], quads[4 + c], 0xDD);
    const __m512 even1 = _mm512_shuffle_f32x4(quads[8 + c], quads[12 + c], 0x88);
    const __m512 odd1 = _mm512_shuffle_f32x4(quads[8 + c], quads[12 + c], 0xDD);
    x[c] = _mm512_shuffle_f32x4(even0, even1, 0x88);
    x[4 + c] = _mm512_shuffle_f32x4(odd0, odd1, 0x88);
    x[8 + c] = _mm512_shuffle_f32x4(even0, even1, 0xDD);
    x[12 + c] = _mm512_shuffle_f32x4(odd0, odd1, 0xDD);
  }
}

}  // namespace
}  // namespace tidekv::cpu

#endif
