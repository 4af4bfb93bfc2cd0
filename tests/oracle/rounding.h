// How far rounding alone can take a result from the exact one. Every bound of the oracle is made of
// these; each is a standard forward error bound, derived where it is used.
#pragma once

#include <cmath>

#include "tensor/dtype.h"

namespace tidekv::oracle {

// Relative error of one rounding to float: half a unit in the last place.
inline constexpr double kFloatRounding = 0x1p-24;
// Absolute error of a result that falls below the smallest normal float, flushed or not.
inline constexpr double kFloatTiny = 0x1p-126;
// What a kernel's exponential of an exact float argument may be off by: four roundings.
inline constexpr double kExpRounding = 0x1p-22;
// What a kernel's sine or cosine of an exact float argument may be off by, absolute.
inline constexpr double kTrigRounding = 0x1p-22;

// Relative error of one rounding to the type a result is stored in.
constexpr double storage_rounding(DType dtype) {
  return dtype == DType::kBF16 ? 0x1p-8 : kFloatRounding;
}

// Relative error of n float roundings in a row: (1 + u)^n - 1, at most n u / (1 - n u). A sum of n
// products, in any order, fused or not, is off by at most rounding_growth(n) times the sum of the
// products' magnitudes.
constexpr double rounding_growth(double n) {
  const double nu = n * kFloatRounding;
  return nu / (1.0 - nu);
}

}  // namespace tidekv::oracle
