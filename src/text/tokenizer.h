// Text to token ids and back.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/text_range.h"
#include "tidekv/result.h"

namespace tidekv {

struct EncodeOptions {
  bool add_bos = true;         // put BOS first if the tokenizer's file wants one
  bool parse_special = false;  // text that spells a special token becomes that token
  // What a user wrote inside a rendered chat, in order and apart: no special token is recognised
  // that touches one of these. Tokens of ordinary text still span their edges, as in one text.
  std::span<const TextRange> protected_ranges = {};
  std::int64_t max_tokens = 0;  // a text that surely has more is refused before any work; 0: none
};

// Immutable after loading; safe to share between threads.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Ids of `text`: for valid UTF-8 those that Hugging Face's tokenizers gives. Bytes that are not
  // keep their values: each stretch of them is a piece by itself, so token_bytes() of the ids join
  // to `text` again (unless the file's normalizer or pre-tokeniser drops or adds text, as
  // SentencePiece's leading space). With add_bos exactly one BOS leads, also when the text itself
  // starts with BOS and parse_special is on.
  virtual Result<std::vector<std::int32_t>> encode(std::string_view text,
                                                   const EncodeOptions& options) const = 0;

  // The bytes token `id` stands for; empty for special tokens and unknown ids.
  virtual std::string_view token_bytes(std::int32_t id) const = 0;

  // The token's text as the vocabulary spells it (for listings); empty for unknown ids.
  virtual std::string_view token_text(std::int32_t id) const = 0;

  // Id of a special token, or of another that is found in the text itself, by its content:
  // "<|im_end|>"; -1 if there is none.
  virtual std::int32_t find_special(std::string_view content) const = 0;

  // What the file's normalizer makes of `text`: the same for two texts that become the same tokens.
  virtual std::string normalized(std::string_view text) const = 0;

  virtual bool is_special(std::int32_t id) const = 0;
  virtual std::int64_t vocab_size() const = 0;    // largest id + 1
  virtual std::int32_t bos_token_id() const = 0;  // -1: none
};

// Reads a Hugging Face folder's tokenizer: tokenizer.json (BPE, byte-level or of SentencePiece's
// kind), or without one tokenizer.model (SentencePiece, or tiktoken's ranks), and in both cases
// tokenizer_config.json. Anything not supported is refused by name.
Result<std::unique_ptr<Tokenizer>> load_tokenizer(const std::string& folder);

// Parses the bytes of a tokenizer.model, of either kind; `file` names it in errors.
Result<std::unique_ptr<Tokenizer>> parse_tokenizer_model(std::string_view bytes,
                                                         const std::string& file);

// Parses the JSON itself; `file` names it in errors.
Result<std::unique_ptr<Tokenizer>> parse_tokenizer_json(std::string_view json,
                                                        const std::string& file);

// Streaming detokenisation: feed ids, get text that never ends inside a UTF-8 character.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  // Text that became complete with this token; "" while a character is still incomplete.
  std::string next(std::int32_t id);

  // What is left at the end: incomplete bytes as U+FFFD.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  std::string pending_;
};

}  // namespace tidekv
