// What tokenizer_config.json, beside tokenizer.json, says about the first token.
#pragma once

#include <string>
#include <string_view>

#include "tidekv/result.h"

namespace tidekv {

struct TokenizerConfig {
  bool add_bos_token = false;
  std::string bos_token;  // empty: none
};

// Reads those two fields and skips all others. `file` names the file in errors.
Result<TokenizerConfig> read_tokenizer_config(std::string_view json, const std::string& file);

}  // namespace tidekv
