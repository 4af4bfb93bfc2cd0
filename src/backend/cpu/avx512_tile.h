// The register tile of the products, for any instruction that multiplies and adds, and the
// transpose that packs panels. For sources compiled with AVX-512 only, as avx512_vectors.h.
#pragma once

#ifdef __AVX512F__

#include <utility>

#include "backend/cpu/avx512_vectors.h"

namespace tidekv::cpu::avx512 {
namespace {

// Rows become columns: afterwards lane r of x[c] is what lane c of x[r] was.
inline void transpose(__m512 (&x)[kLanes]) {
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

// A tile of kRows x 32 accumulators stays in registers: 24 of them at 12 rows, two of the panel and
// one broadcast. MultiplyAdd::add(sum, factor, b) takes 16 units of the panel into 16 sums.
template <typename MultiplyAdd, int kRows>
void multiply_rows(const float* a, const float* panel, std::int64_t depth, Start start, float* c,
                   std::int64_t c_stride) {
  __m512 left[kRows];
  __m512 right[kRows];
  TIDEKV_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const bool goes_on = start == Start::kContinue;
    left[r] = goes_on ? _mm512_loadu_ps(c + r * c_stride) : _mm512_setzero_ps();
    right[r] = goes_on ? _mm512_loadu_ps(c + r * c_stride + kLanes) : _mm512_setzero_ps();
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    const __m512 b0 = _mm512_loadu_ps(panel + k * kPanelCols);
    const __m512 b1 = _mm512_loadu_ps(panel + k * kPanelCols + kLanes);
    TIDEKV_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const __m512 factor = _mm512_set1_ps(a[r * kRowStride + k]);
      left[r] = MultiplyAdd::add(left[r], factor, b0);
      right[r] = MultiplyAdd::add(right[r], factor, b1);
    }
  }
  TIDEKV_UNROLL
  for (int r = 0; r < kRows; ++r) {
    if (start == Start::kAdd) {
      left[r] = _mm512_add_ps(left[r], _mm512_loadu_ps(c + r * c_stride));
      right[r] = _mm512_add_ps(right[r], _mm512_loadu_ps(c + r * c_stride + kLanes));
    }
    _mm512_storeu_ps(c + r * c_stride, left[r]);
    _mm512_storeu_ps(c + r * c_stride + kLanes, right[r]);
  }
}

template <typename MultiplyAdd, int... kIndex>
void multiply_strip_of(std::integer_sequence<int, kIndex...> /*rows*/, const float* a,
                       const float* panel, std::int64_t rows, std::int64_t depth, Start start,
                       float* c, std::int64_t c_stride) {
  using MultiplyRows =
      void (*)(const float*, const float*, std::int64_t, Start, float*, std::int64_t);
  static constexpr MultiplyRows kMultiplyRows[] = {multiply_rows<MultiplyAdd, kIndex + 1>...};
  kMultiplyRows[rows - 1](a, panel, depth, start, c, c_stride);
}

// Kernels::multiply.
template <typename MultiplyAdd>
void multiply_strip(const float* a, const float* panel, std::int64_t rows, std::int64_t depth,
                    Start start, float* c, std::int64_t c_stride) {
  multiply_strip_of<MultiplyAdd>(std::make_integer_sequence<int, kStripRows>{}, a, panel, rows,
                                 depth, start, c, c_stride);
}

}  // namespace
}  // namespace tidekv::cpu::avx512

#endif
