// Reads tiktoken's rank files (Llama 3's tokenizer.model): one token a line, in base64, and its
// rank.
#pragma once

#include <string>
#include <string_view>

#include "text/tokenizer_spec.h"
#include "tidekv/result.h"

namespace tidekv {

// Whether the first line of `bytes` looks like one of such a file.
bool is_tiktoken_ranks(std::string_view bytes);

// The ranks as ids, with Llama 3's pre-tokeniser; no special tokens yet. `file` names the file in
// errors.
Result<TokenizerSpec> read_tiktoken_ranks(std::string_view bytes, const std::string& file);

// Llama 3's 256 special tokens, whose ids follow those of the ranks.
std::vector<AddedToken> llama3_special_tokens(std::int32_t first_id);

}  // namespace tidekv
