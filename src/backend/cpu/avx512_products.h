// The products of the AVX-512 table (Kernels in kernels.h says what each does).
#pragma once

#include <cstdint>

#include "backend/cpu/kernels.h"

namespace tidekv::cpu::avx512 {

void pack_columns(const void* from, Element type, std::int64_t stride, std::int64_t rows,
                  std::int64_t depth, float* panel);
void pack_rows(const void* from, Element type, std::int64_t stride, std::int64_t depth,
               std::int64_t cols, float* panel);
void multiply(const float* a, const float* panel, std::int64_t rows, std::int64_t depth,
              Start start, float* c, std::int64_t c_stride);
void dots(const ElementRows& rows, std::int64_t n, const float* a, Start start, float* sums);
void add_rows(const ElementRows& rows, std::int64_t n, const float* factors, float* sum);

}  // namespace tidekv::cpu::avx512
