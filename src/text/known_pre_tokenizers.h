// The pre-tokenisers that GGUF files name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.h"
#include "tidekv/result.h"

namespace tidekv {

// What GPT-2's tokenizer cuts by, and ByteLevel in tokenizer.json.
inline constexpr const char* kGpt2Pattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// One of them, and what else tokenizers that use it have in common but GGUF has no field for.
struct KnownPreTokenizer {
  std::vector<PreTokenizerStep> steps;
  bool ignore_merges = false;
  bool compose = false;
  bool add_bos = false;  // where the file does not say
};

// By the value of tokenizer.ggml.pre; `field` leads the error for a name that is not known, which
// lists those that are.
Result<KnownPreTokenizer> find_pre_tokenizer(std::string_view name, const std::string& field);

}  // namespace tidekv
