// One tensor of a weight file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tensor/dtype.h"

namespace tidekv {

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;  // outermost first; empty for a scalar
  const std::byte* data = nullptr;  // inside a mapped file
  std::int64_t num_bytes = 0;
};

}  // namespace tidekv
