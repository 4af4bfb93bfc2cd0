// What tokenizer_config.json says beside a tokenizer's own file.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.h"
#include "tidekv/result.h"

namespace tidekv {

struct TokenizerConfig {
  std::optional<bool> add_bos_token;
  std::string bos_token;  // empty: none
  // For SentencePiece: legacy false puts the leading space only where the text begins.
  std::optional<bool> legacy;
  std::optional<bool> add_prefix_space;
};

// Reads those fields and skips all others. `file` names the file in errors.
Result<TokenizerConfig> read_tokenizer_config(std::string_view json, const std::string& file);

// The tokens of added_tokens_decoder, which only matter where there is no tokenizer.json.
Result<std::vector<AddedToken>> read_added_tokens_decoder(std::string_view json,
                                                          const std::string& file);

}  // namespace tidekv
