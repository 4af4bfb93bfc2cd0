// The vectors of the instruction set that a source is compiled for, and what follows from them.
//
// avx512_vectors.h and avx2_vectors.h give the same names to the same operations, so that the
// kernels are written once: vector_rows.h, vector_products.h, vector_blocks.h. All is empty in
// sources without vectors, and has internal linkage (kernels.h says why). The last lanes of a row
// go through masks: bytes past its end are neither read nor written.
#pragma once

#ifdef __AVX2__

#include "backend/cpu/avx2_vectors.h"
#include "backend/cpu/avx512_vectors.h"
#include "backend/cpu/kernels.h"

namespace tidekv::cpu {
namespace {

template <Element kType>
constexpr std::int64_t kElementBytes = kType == Element::kF32 ? 4 : 2;

template <Element kType>
struct Constant {};

// Calls body with the type as a compile-time constant; an activation is kF32 or kBF16.
template <typename Body>
inline void with_activation(Element type, const Body& body) {
  if (type == Element::kF32) {
    body(Constant<Element::kF32>{});
  } else {
    body(Constant<Element::kBF16>{});
  }
}

template <typename Body>
inline void with_element(Element type, const Body& body) {
  if (type == Element::kF16) {
    body(Constant<Element::kF16>{});
  } else {
    with_activation(type, body);
  }
}

// Elements [i, i + kLanes) of a row; lanes outside the mask are 0.
template <Element kType>
inline Vector load(const void* row, std::int64_t i, LaneMask mask = kAllLanes) {
  const char* at = static_cast<const char*>(row) + i * kElementBytes<kType>;
  if constexpr (kType == Element::kF32) {
    return load_f32(at, mask);
  } else if constexpr (kType == Element::kBF16) {
    return load_bf16(at, mask);
  } else {
    return load_f16(at, mask);
  }
}

template <Element kType>
inline void store(Vector value, void* row, std::int64_t i, LaneMask mask = kAllLanes) {
  static_assert(kType != Element::kF16, "activations are f32 or bf16");
  char* at = static_cast<char*>(row) + i * kElementBytes<kType>;
  if constexpr (kType == Element::kF32) {
    store_f32(value, at, mask);
  } else {
    store_bf16(value, at, mask);
  }
}

// A sum over a row goes round four vectors; the sums of four rows are added up side by side.
constexpr int kSums = 4;
constexpr int kRowsAtOnce = 4;
static_assert(kRowsAtOnce % kRowsTogether == 0);

inline Vector add_up(const Vector (&sums)[kSums]) {
  return add(add(sums[0], sums[1]), add(sums[2], sums[3]));
}

// The sums of the lanes of four vectors, in one fixed tree.
inline __m128 sums_of(const Vector (&x)[kRowsAtOnce]) {
  __m128 quarters[kRowsAtOnce] = {add_quarters(x[0]), add_quarters(x[1]), add_quarters(x[2]),
                                  add_quarters(x[3])};
  _MM_TRANSPOSE4_PS(quarters[0], quarters[1], quarters[2], quarters[3]);
  return _mm_add_ps(_mm_add_ps(quarters[0], quarters[2]), _mm_add_ps(quarters[1], quarters[3]));
}

// Asks for kBytes that are needed soon behind `from`: so far ahead that they are there in time, as
// measured. An address past the end of memory is no error.
template <std::int64_t kBytes>
inline void prefetch(const char* from) {
  constexpr std::int64_t kAhead = 16384;
  TIDEKV_UNROLL
  for (std::int64_t i = 0; i < kBytes; i += 64) {
    _mm_prefetch(from + kAhead + i, _MM_HINT_T0);
  }
}

template <int kCount>
struct Count {};

// Sums of four rows with each of kFactors rows of factors, in the lanes of a vector each.
template <int kFactors>
using Totals = Vector[kFactors][kRowsAtOnce];

// sums.row(v)[r] = (or +=) what dot says of row r and row v of the factors, for all rows.
// dot(Count<kCount>{}, row, totals, at) leaves kCount rows' sums in totals[v][at] and behind, each
// by the same operations as alone.
template <int kFactors, typename Dot>
inline void sum_rows(std::int64_t rows, Start start, const FloatRows& sums, const Dot& dot) {
  constexpr int kTogether = kRowsTogether > kFactors ? kRowsTogether / kFactors : 1;
  std::int64_t r = 0;
  for (; r + kRowsAtOnce <= rows; r += kRowsAtOnce) {
    Totals<kFactors> totals;
    TIDEKV_UNROLL
    for (int at = 0; at < kRowsAtOnce; at += kTogether) {
      dot(Count<kTogether>{}, r + at, totals, at);
    }
    TIDEKV_UNROLL
    for (int v = 0; v < kFactors; ++v) {
      const __m128 values = sums_of(totals[v]);
      float* to = sums.row(v) + r;
      _mm_storeu_ps(to, start == Start::kAdd ? _mm_add_ps(_mm_loadu_ps(to), values) : values);
    }
  }
  for (; r < rows; ++r) {
    Totals<kFactors> totals;
    TIDEKV_UNROLL
    for (int v = 0; v < kFactors; ++v) {
      totals[v][1] = totals[v][2] = totals[v][3] = zeros();
    }
    dot(Count<1>{}, r, totals, 0);
    TIDEKV_UNROLL
    for (int v = 0; v < kFactors; ++v) {
      const float value = _mm_cvtss_f32(sums_of(totals[v]));
      float& to = sums.row(v)[r];
      to = start == Start::kAdd ? to + value : value;
    }
  }
}

// Calls body(Count<kCount>{}, first) for the rows of `factors`, as many at a time as keep their
// sums in registers.
template <typename Body>
inline void for_factors(std::int64_t factors, const Body& body) {
  std::int64_t v = 0;
  for (; v + kRowsTogether <= factors; v += kRowsTogether) {
    body(Count<kRowsTogether>{}, v);
  }
  const std::int64_t left = factors - v;
  if constexpr (kRowsTogether > 3) {
    if (left == 3) {
      return body(Count<3>{}, v);
    }
    if (left == 2) {
      return body(Count<2>{}, v);
    }
  }
  if (left == 1) {
    body(Count<1>{}, v);
  }
}

inline FloatRows from_row(const FloatRows& rows, std::int64_t first) {
  return {rows.row(first), rows.stride, rows.rows - first};
}

// x[j] becomes exp(x[j]), for x <= 88: x = n ln2 + r, |r| <= ln2 / 2, and 1 + r + r^2 q(r), q
// interpolated at Chebyshev nodes (relative error 0.2 of 2^-24). Exactly 1 at 0, 0 below -104; NaN
// stays NaN. Several vectors go step by step together: one alone waits for its own results.
template <int kCount>
inline void exponentials_of(Vector (&x)[kCount]) {
  constexpr float kRoundToInteger = 0x1.8p23F;
  constexpr float kLog2E = 0x1.715476p+0F;
  constexpr float kLn2High = 0x1.63p-1F;
  constexpr float kLn2Low = -0x1.bd0106p-13F;
  constexpr float kCoefficients[] = {0.0083634727F, 0.0416665524F, 0.1666657522F, 0.5F, 1.0F, 1.0F};
  Vector n[kCount];
  Vector p[kCount];
  TIDEKV_UNROLL
  for (int j = 0; j < kCount; ++j) {
    x[j] = larger(all_lanes(-104.0F), x[j]);
  }
  TIDEKV_UNROLL
  for (int j = 0; j < kCount; ++j) {
    n[j] = multiply_add(x[j], all_lanes(kLog2E), all_lanes(kRoundToInteger));
  }
  TIDEKV_UNROLL
  for (int j = 0; j < kCount; ++j) {
    n[j] = subtract(n[j], all_lanes(kRoundToInteger));
  }
  TIDEKV_UNROLL
  for (int j = 0; j < kCount; ++j) {
    x[j] = subtract_product(n[j], all_lanes(kLn2High), x[j]);
  }
  TIDEKV_UNROLL
  for (int j = 0; j < kCount; ++j) {
    x[j] = subtract_product(n[j], all_lanes(kLn2Low), x[j]);
    p[j] = all_lanes(0.0013926550F);
  }
  TIDEKV_UNROLL
  for (const float coefficient : kCoefficients) {
    TIDEKV_UNROLL
    for (int j = 0; j < kCount; ++j) {
      p[j] = multiply_add(p[j], x[j], all_lanes(coefficient));
    }
  }
  TIDEKV_UNROLL
  for (int j = 0; j < kCount; ++j) {
    x[j] = times_power_of_two(p[j], n[j]);
  }
}

inline Vector exponential_of(Vector x) {
  Vector one[1] = {x};
  exponentials_of(one);
  return one[0];
}

}  // namespace
}  // namespace tidekv::cpu

#endif
