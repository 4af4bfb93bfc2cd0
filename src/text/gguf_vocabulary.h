// A GGUF file's tokenizer: its tokenizer.ggml.* fields as plain data, and the tokenizer they make.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "text/tokenizer.h"
#include "text/tokenizer_spec.h"
#include "tidekv/result.h"

namespace tidekv {

// Each field is tokenizer.ggml.<its name>, unless a comment says otherwise.
struct GgufVocabulary {
  std::string model;                      // "gpt2", "llama" (SentencePiece BPE) or "t5" (unigram)
  std::string pre;                        // only for "gpt2"
  TextList tokens;                        // by id
  std::vector<float> scores;              // of `tokens`; not for "gpt2"
  std::vector<std::int32_t> token_types;  // token_type, of `tokens`; empty: all normal
  TextList merges;                        // "left right"; only for "gpt2"
  std::optional<std::int32_t> bos_id;     // bos_token_id
  std::optional<std::int32_t> eos_id;     // eos_token_id
  std::optional<std::int32_t> unk_id;     // unknown_token_id
  std::optional<bool> add_bos;            // add_bos_token
  std::optional<bool> add_eos;            // add_eos_token
  std::optional<bool> add_space_prefix;
  std::optional<bool> remove_extra_whitespaces;
  std::string precompiled_charsmap;
};

// `file` names the file in errors. Control tokens and unknown ones are special; user-defined ones
// are found in every text.
Result<std::unique_ptr<Tokenizer>> make_gguf_tokenizer(const GgufVocabulary& vocabulary,
                                                       const std::string& file);

}  // namespace tidekv
