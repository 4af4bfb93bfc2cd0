// The small sections of tokenizer.json: what they say, or that it is not supported.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "text/tokenizer_spec.h"
#include "tidekv/result.h"

namespace tidekv {

// `root`: the file's object without model.vocab, model.merges and added_tokens.
Status read_sections(const nlohmann::json& root, const std::string& file, TokenizerSpec& spec);

// One entry of added_tokens; `where` names it in errors.
Result<AddedToken> read_added_token(const nlohmann::json& entry, const std::string& where);

}  // namespace tidekv
