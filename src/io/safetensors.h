// The safetensors container: header length (8 bytes, little-endian), a JSON header, the data.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "io/tensor_info.h"
#include "tidekv/result.h"

namespace tidekv {

struct SafetensorsContents {
  std::map<std::string, TensorInfo, std::less<>> tensors;        // BF16, F16, F32
  std::map<std::string, std::string, std::less<>> other_dtypes;  // name to type, as spelled
};

// Checks everything but the values: the tensors' bytes tile the data section without holes or
// overlap, to its last byte. `bytes` is the whole file; `file` names it in errors.
Result<SafetensorsContents> parse_safetensors(std::span<const std::byte> bytes,
                                              const std::string& file);

}  // namespace tidekv
