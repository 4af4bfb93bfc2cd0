// The table of AVX2 with FMA and F16C.
#include "backend/cpu/avx2_blocks.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/vector_products.h"
#include "backend/cpu/vector_rows.h"

namespace tidekv::cpu {

const Kernels kAvx2Kernels = {
    .widen = widen,
    .narrow = narrow,
    .narrow_add = narrow_add,
    .pack_columns = pack_columns,
    .pack_rows = pack_rows,
    .multiply = multiply_strip<FusedMultiplyAdd>,
    .dots = dots,
    .add_rows = add_rows,
    .expand = avx2::expand,
    .block_dots = avx2::block_dots,
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

}  // namespace tidekv::cpu
