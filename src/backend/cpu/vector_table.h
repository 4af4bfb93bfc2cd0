// The table of an instruction set with vectors (Kernels in kernels.h): the kernels of vectors.h's
// vectors, and the blocks, which each set decodes in its own way.
#pragma once

#ifdef __AVX2__

#include "backend/cpu/kernels.h"
#include "backend/cpu/vector_codes.h"
#include "backend/cpu/vector_products.h"
#include "backend/cpu/vector_rows.h"

namespace tidekv::cpu {
namespace {

constexpr Kernels vector_table(decltype(Kernels::expand) expand,
                               decltype(Kernels::block_dots) block_dots,
                               const Products* bf16_pairs) {
  return {
      .widen = widen,
      .narrow = narrow,
      .narrow_add = narrow_add,
      .pack_columns = pack_columns,
      .pack_rows = pack_rows,
      .multiply = multiply_strip<FusedMultiplyAdd>,
      .bf16_pairs = bf16_pairs,
      .dots = dots,
      .add_rows = add_rows,
      .expand = expand,
      .block_dots = block_dots,
      .expand_codes = expand_codes,
      .max_product = max_product,
      .exponentials = exponentials,
      .weights = weights,
      .exponential = exponential,
      .multiply_by = multiply_by,
      .divide_by = divide_by,
      .rms_norm = rms_norm,
      .rotate = rotate,
      .swiglu = swiglu,
  };
}

}  // namespace
}  // namespace tidekv::cpu

#endif
