// The table of AVX2 with FMA and F16C.
#include "backend/cpu/avx2_blocks.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/vector_table.h"

namespace tidekv::cpu {

const Kernels kAvx2Kernels = vector_table(avx2::expand, avx2::block_dots, nullptr);

}  // namespace tidekv::cpu
