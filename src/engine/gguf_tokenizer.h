// From a GGUF file's tokenizer.ggml fields to a tokenizer.
#pragma once

#include <memory>

#include "io/gguf_metadata.h"
#include "text/tokenizer.h"
#include "tidekv/result.h"

namespace tidekv {

Result<std::unique_ptr<Tokenizer>> read_gguf_tokenizer(const GgufMetadata& metadata);

}  // namespace tidekv
