// The GGUF container, versions 2 and 3: counts, metadata, the tensors' descriptions, the data.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "io/gguf_metadata.h"
#include "io/tensor_info.h"
#include "tidekv/result.h"

namespace tidekv {

struct GgufContents {
  GgufMetadata metadata;
  std::map<std::string, TensorInfo, std::less<>> tensors;  // of the types below
  // Of other types, which nobody can use: name to type as GGUF spells it, or its number.
  std::map<std::string, std::string, std::less<>> other_dtypes;
};

// What `tensors` may be of, as GGUF spells it, for errors: "F32, ... or Q6_K".
inline constexpr std::string_view kGgufTypesRead =
    "F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1, Q4_K, Q5_K or Q6_K";

bool begins_like_gguf(std::span<const std::byte> bytes);

// Checks everything but the values: the tensors' bytes lie inside the file and do not overlap.
// Shapes are outermost first, the reverse of the file's order, and rows are whole blocks. `bytes`
// is the whole file, which the result points into; `file` names it in errors.
Result<GgufContents> parse_gguf(std::span<const std::byte> bytes, const std::string& file);

// The same, but `contents` keeps what stands before the damage that the error is about.
Status parse_gguf_until_damage(std::span<const std::byte> bytes, const std::string& file,
                               GgufContents& contents);

}  // namespace tidekv
