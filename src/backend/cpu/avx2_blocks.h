// Block-quantised rows in the AVX2 table (Kernels in kernels.h says what each does).
#pragma once

#include <cstdint>

#include "backend/cpu/kernels.h"

namespace tidekv::cpu::avx2 {

void expand(const void* row, BlockType type, std::int64_t first, std::int64_t n, float* to);
void block_dots(const BlockRows& w, std::int64_t n, const float* a, Start start, float* sums);

}  // namespace tidekv::cpu::avx2
