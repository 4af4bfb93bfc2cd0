// The tables of AVX-512 (F, BW, VL, DQ), without and with BF16 pairs.
#include "backend/cpu/avx512_bf16_products.h"
#include "backend/cpu/avx512_blocks.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/vector_products.h"
#include "backend/cpu/vector_rows.h"

namespace tidekv::cpu {
namespace {

constexpr Kernels table_with(const Products* bf16_pairs) {
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
      .expand = avx512::expand,
      .block_dots = avx512::block_dots,
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

const Kernels kAvx512Kernels = table_with(nullptr);
const Kernels kAvx512Bf16Kernels = table_with(&avx512::kBf16Pairs);

}  // namespace tidekv::cpu
