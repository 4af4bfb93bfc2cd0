// The tensors of a GGUF file: their descriptions, one after the other, then the data.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "io/byte_reader.h"
#include "io/tensor_info.h"
#include "tidekv/result.h"

namespace tidekv {

struct GgufTensors {
  std::map<std::string, TensorInfo, std::less<>> usable;
  std::map<std::string, std::string, std::less<>> other_dtypes;
};

// Reads `count` descriptions, from where `bytes` stands; the data begin at the next multiple of
// `alignment` after them. `bytes` are the whole file.
Result<GgufTensors> read_gguf_tensors(ByteReader& bytes, std::uint64_t count,
                                      std::int64_t alignment, const std::string& file);

}  // namespace tidekv
