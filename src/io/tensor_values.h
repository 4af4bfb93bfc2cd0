// Looks at every value of a model: a damaged or badly converted file may hold NaN or infinity.
#pragma once

#include "io/tensor_file.h"
#include "tidekv/result.h"

namespace tidekv {

// An error that names the first tensor, by name, that holds NaN or infinity, and the place of its
// first one. Of quantised tensors, the scales and minima of the blocks are looked at: nothing else
// in a block can be anything but a finite number. Reads the whole file.
Status check_tensor_values(const TensorFile& file);

}  // namespace tidekv
