// The metadata section of a GGUF file: key, type and value of each field, one after the other.
#pragma once

#include <cstdint>
#include <string>

#include "io/byte_reader.h"
#include "io/gguf_metadata.h"
#include "tidekv/result.h"

namespace tidekv {

// Reads `num_fields` entries into `metadata`, whose `file` leads errors, from where `bytes` stands
// to the byte after the last one. After an error `metadata` holds those before it.
Status read_gguf_metadata(ByteReader& bytes, std::uint64_t num_fields, GgufMetadata& metadata);

}  // namespace tidekv
