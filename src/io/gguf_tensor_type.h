// The element types of GGUF tensors, those that are not read included.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace tidekv {

struct GgufTensorType {
  std::uint32_t id;
  std::string_view spelling;  // empty if unknown
  std::int64_t block_len;     // 0 if unknown
  std::int64_t block_bytes;
  std::optional<DType> dtype;  // of those that can be used
};

// By the number a file gives. Of an unknown type, block_bytes is 1: its data has a first byte.
GgufTensorType gguf_tensor_type(std::uint32_t id);

std::string name_of(const GgufTensorType& type);  // its number if it is unknown

}  // namespace tidekv
