// Reads tokenizer.json: event by event, because a tree of a large one takes hundreds of megabytes.
#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer_spec.h"
#include "tidekv/result.h"

namespace tidekv {

// `file` names the file in errors. What is read is well formed and supported; whether ids, tokens
// and merges fit together is for Vocabulary, Bpe and AddedTokens to say.
Result<TokenizerSpec> read_tokenizer_json(std::string_view json, const std::string& file);

}  // namespace tidekv
