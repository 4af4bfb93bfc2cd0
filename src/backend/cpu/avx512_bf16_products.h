// Products of BF16 pairs in AVX-512 (Products in kernels.h says what each does).
#pragma once

#include "backend/cpu/kernels.h"

namespace tidekv::cpu::avx512 {

extern const Products kBf16Pairs;

}  // namespace tidekv::cpu::avx512
