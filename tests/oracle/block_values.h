// Elements of block-quantised types from the definition of their bytes, one by one, in double.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace tidekv::oracle {

// Element `i` of the block that begins at `block`. Exact: scales and minima are multiples of 2^-24,
// and every term stays below 2^28.
double block_value(DType dtype, const std::byte* block, std::int64_t i);

// The offsets of a block's f16 numbers: its scale, and its minimum where it has one (else -1).
struct BlockScales {
  std::int64_t scale = 0;
  std::int64_t min = -1;
};
BlockScales block_scales(DType dtype);

// The largest |q| (times the largest scale of a group) that a block's scale multiplies.
double largest_factor(DType dtype);

}  // namespace tidekv::oracle
