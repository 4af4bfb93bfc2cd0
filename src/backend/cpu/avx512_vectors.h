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

inline __mmask16 first_lanes(std::int64_t count) {
  return count >= kLanes ? kAllLanes : static_cast<__mmask16>((1U << count) - 1U);
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

// exp(x) for x <= 88: x = n ln2 + r, |r| <= ln2 / 2, and 1 + r + r^2 q(r), q interpolated at
// Chebyshev nodes (relative error 0.2 of 2^-24). Exactly 1 at 0, 0 below -104; NaN stays NaN.
inline __m512 exponential_of(__m512 x) {
  const __m512 round_to_integer = _mm512_set1_ps(0x1.8p23F);
  const __m512 clamped = _mm512_max_ps(_mm512_set1_ps(-104.0F), x);  // the second if NaN
  const __m512 n = _mm512_sub_ps(
      _mm512_fmadd_ps(clamped, _mm512_set1_ps(0x1.715476p+0F), round_to_integer), round_to_integer);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0x1.63p-1F), clamped);  // ln2 in two parts
  r = _mm512_fmadd_ps(n, _mm512_set1_ps(0x1.bd0106p-13F), r);
  __m512 p = _mm512_set1_ps(0.0013926550F);
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.0083634727F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.0416665524F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.1666657522F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(0.5F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0F));
  return _mm512_scalef_ps(p, n);
}

}  // namespace
}  // namespace tidekv::cpu

#endif
