// The tables of AVX-512 (F, BW, VL, DQ), without and with BF16 pairs.
#include "backend/cpu/avx512_bf16_products.h"
#include "backend/cpu/avx512_blocks.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/vector_table.h"

namespace tidekv::cpu {

const Kernels kAvx512Kernels = vector_table(avx512::expand, avx512::block_dots, nullptr);
const Kernels kAvx512Bf16Kernels =
    vector_table(avx512::expand, avx512::block_dots, &avx512::kBf16Pairs);

}  // namespace tidekv::cpu
