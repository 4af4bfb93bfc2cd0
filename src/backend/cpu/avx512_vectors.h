// Vectors of 16 floats: loads and stores of every element type, and the exponential.
//
// Only for sources compiled with AVX-512; empty elsewhere. Everything has internal linkage
// (kernels.h says why), and the last lanes of a row go through masks: bytes past its end are
// neither read nor written.
#pragma once

#ifdef __AVX512F__

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "backend/cpu/kernels.h"

#if defined(__clang__)
#define TIDEKV_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TIDEKV_UNROLL _Pragma("GCC unroll 16")
#endif

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kLanes = 16;
constexpr __mmask16 kAllLanes = 0xFFFF;

template <Element kType>
constexpr std::int64_t kElementBytes = kType == Element::kF32 ? 4 : 2;

// Lanes [0, count); none if count is negative.
inline __mmask16 first_lanes(std::int64_t count) {
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

inline __m512 widen_bf16(__m256i bits) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

// Round to nearest, ties to even; a NaN stays a quiet NaN.
inline __m256i narrow_to_bf16(__m512 value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i result = _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x00400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(result, 16));
}

// Elements [i, i + 16) of a row; lanes outside the mask are 0.
template <Element kType>
inline __m512 load(const void* row, std::int64_t i, __mmask16 mask = kAllLanes) {
  const char* at = static_cast<const char*>(row) + i * kElementBytes<kType>;
  if constexpr (kType == Element::kF32) {
    return _mm512_maskz_loadu_ps(mask, at);
  } else if constexpr (kType == Element::kBF16) {
    return widen_bf16(_mm256_maskz_loadu_epi16(mask, at));
  } else {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, at));
  }
}

template <Element kType>
inline void store(__m512 value, void* row, std::int64_t i, __mmask16 mask = kAllLanes) {
  static_assert(kType != Element::kF16, "activations are f32 or bf16");
  char* at = static_cast<char*>(row) + i * kElementBytes<kType>;
  if constexpr (kType == Element::kF32) {
    _mm512_mask_storeu_ps(at, mask, value);
  } else {
    _mm256_mask_storeu_epi16(at, mask, narrow_to_bf16(value));
  }
}

// The four sums of the lanes of four vectors, in one fixed tree.
inline __m128 sums_of(const __m512 (&x)[4]) {
  __m128 quarter[4];
  TIDEKV_UNROLL
  for (int j = 0; j < 4; ++j) {
    const __m256 half =
        _mm256_add_ps(_mm512_castps512_ps256(x[j]), _mm512_extractf32x8_ps(x[j], 1));
    quarter[j] = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  }
  _MM_TRANSPOSE4_PS(quarter[0], quarter[1], quarter[2], quarter[3]);
  return _mm_add_ps(_mm_add_ps(quarter[0], quarter[2]), _mm_add_ps(quarter[1], quarter[3]));
}

// A sum over a row goes round four vectors; four rows are summed side by side.
constexpr int kSums = 4;
constexpr int kRowsAtOnce = 4;

// The sums of up to four rows, the others 0.
template <int kRows>
inline __m128 sums_of_rows(const __m512 (&sums)[kRows][kSums]) {
  __m512 totals[kRowsAtOnce] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                                _mm512_setzero_ps()};
  TIDEKV_UNROLL
  for (int r = 0; r < kRows; ++r) {
    totals[r] =
        _mm512_add_ps(_mm512_add_ps(sums[r][0], sums[r][1]), _mm512_add_ps(sums[r][2], sums[r][3]));
  }
  return sums_of(totals);
}

// sums[r] = (or +=) value r, for r < count <= 4.
inline void store_sums(__m128 values, std::int64_t count, Start start, float* sums) {
  const auto mask = static_cast<__mmask8>((1U << static_cast<unsigned>(count)) - 1U);
  if (start == Start::kAdd) {
    values = _mm_add_ps(_mm_maskz_loadu_ps(mask, sums), values);
  }
  _mm_mask_storeu_ps(sums, mask, values);
}

// x[j] becomes exp(x[j]), for x <= 88: x = n ln2 + r, |r| <= ln2 / 2, and 1 + r + r^2 q(r), q
// interpolated at Chebyshev nodes (relative error 0.2 of 2^-24). Exactly 1 at 0, 0 below -104; NaN
// stays NaN. Several vectors go step by step together: one alone waits for its own results.
template <int kCount>
inline void exponentials_of(__m512 (&x)[kCount]) {
  constexpr float kRoundToInteger = 0x1.8p23F;
  constexpr float kLog2E = 0x1.715476p+0F;
  constexpr float kLn2High = 0x1.63p-1F;
  constexpr float kLn2Low = -0x1.bd0106p-13F;
  constexpr float kCoefficients[] = {0.0083634727F, 0.0416665524F, 0.1666657522F, 0.5F, 1.0F, 1.0F};
  __m512 n[kCount];
  __m512 p[kCount];
  TIDEKV_UNROLL
  for (int j = 0; j < kCount; ++j) {
    x[j] = _mm512_max_ps(_mm512_set1_ps(-104.0F), x[j]);  // the second if NaN
  }
  TIDEKV_UNROLL
  for (int j = 0; j < kCount; ++j) {
    n[j] = _mm512_fmadd_ps(x[j], _mm512_set1_ps(kLog2E), _mm512_set1_ps(kRoundToInteger));
  }
  TIDEKV_UNROLL
  for (int j = 0; j < kCount; ++j) {
    n[j] = _mm512_sub_ps(n[j], _mm512_set1_ps(kRoundToInteger));
  }
  TIDEKV_UNROLL
  for (int j = 0; j < kCount; ++j) {
    x[j] = _mm512_fnmadd_ps(n[j], _mm512_set1_ps(kLn2High), x[j]);
  }
  TIDEKV_UNROLL
  for (int j = 0; j < kCount; ++j) {
    x[j] = _mm512_fnmadd_ps(n[j], _mm512_set1_ps(kLn2Low), x[j]);
    p[j] = _mm512_set1_ps(0.0013926550F);
  }
  TIDEKV_UNROLL
  for (const float coefficient : kCoefficients) {
    TIDEKV_UNROLL
    for (int j = 0; j < kCount; ++j) {
      p[j] = _mm512_fmadd_ps(p[j], x[j], _mm512_set1_ps(coefficient));
    }
  }
  TIDEKV_UNROLL
  for (int j = 0; j < kCount; ++j) {
    x[j] = _mm512_scalef_ps(p[j], n[j]);
  }
}

inline __m512 exponential_of(__m512 x) {
  __m512 one[1] = {x};
  exponentials_of(one);
  return one[0];
}

}  // namespace
}  // namespace tidekv::cpu

#endif
