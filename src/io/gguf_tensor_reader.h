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

// Where a file's tensors are described and what for: `count` descriptions; the data begin at the
// next multiple of `alignment` after them.
struct GgufTensorSection {
  std::uint64_t count = 0;
  std::int64_t alignment = 0;
};

// Reads from where `bytes`, the whole file, stand. After an error `out` holds the tensors before
// it.
Status read_gguf_tensors(ByteReader& bytes, const GgufTensorSection& section,
                         const std::string& file, GgufTensors& out);

}  // namespace tidekv
