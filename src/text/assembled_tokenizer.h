// A tokenizer put together from its parts, whichever file they came from.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/added_tokens.h"
#include "text/text_encoder.h"
#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"
#include "text/vocabulary.h"
#include "tidekv/result.h"

namespace tidekv {

// What a text begins with: nothing, or a token.
struct Bos {
  std::int32_t id = -1;
  bool added = false;  // by encode()
};

struct TokenizerParts {
  std::unique_ptr<const Vocabulary> vocabulary;  // the encoder points to it
  AddedTokens added_tokens;
  std::unique_ptr<const TextEncoder> encoder;
  Bos bos;
};

std::unique_ptr<Tokenizer> assemble_tokenizer(TokenizerParts parts);

// The vocabulary and added tokens of `spec`; no encoder and no BOS yet.
Result<TokenizerParts> read_parts(const TokenizerSpec& spec, const std::string& file);

}  // namespace tidekv
