#include "engine/gguf_tokenizer.h"

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "text/gguf_vocabulary.h"

namespace tidekv {
namespace {

constexpr IntRange kTokenIds = {0, (1 << 24) - 1};

std::string key(std::string_view name) { return "tokenizer.ggml." + std::string(name); }

Result<std::optional<std::int32_t>> token_id(const FieldReader& fields, std::string_view name) {
  if (fields.find(key(name)) == nullptr) {
    return std::optional<std::int32_t>{};
  }
  TIDEKV_ASSIGN(const std::int64_t id, fields.integer(key(name), kTokenIds));
  return std::optional(static_cast<std::int32_t>(id));
}

Result<std::optional<bool>> flag(const FieldReader& fields, std::string_view name) {
  if (fields.find(key(name)) == nullptr) {
    return std::optional<bool>{};
  }
  TIDEKV_ASSIGN(const bool value, fields.boolean(key(name)));
  return std::optional(value);
}

Status read_list(const GgufMetadata& metadata, std::string_view name, TextList& out) {
  TIDEKV_ASSIGN(const auto texts, metadata.strings(key(name)));
  for (const std::string_view text : texts) {
    out.add(text);
  }
  return Ok{};
}

Status read_tokens(const GgufMetadata& metadata, GgufVocabulary& vocabulary) {
  TIDEKV_TRY(read_list(metadata, "tokens", vocabulary.tokens));
  const std::size_t num_tokens = vocabulary.tokens.size();
  const auto of_tokens = [&](std::string_view name, std::size_t count) -> Status {
    if (count == num_tokens) {
      return Ok{};
    }
    return Error{ErrorCode::kBadFile, metadata.file + ": field '" + key(name) + "' has " +
                                          std::to_string(count) + " elements; expected " +
                                          std::to_string(num_tokens) + ", one for each of '" +
                                          key("tokens") + "'"};
  };
  if (metadata.array(key("scores")) != nullptr) {
    TIDEKV_ASSIGN(vocabulary.scores, metadata.floats(key("scores")));
    TIDEKV_TRY(of_tokens("scores", vocabulary.scores.size()));
  }
  if (metadata.array(key("token_type")) != nullptr) {
    TIDEKV_ASSIGN(const auto types, metadata.integers(key("token_type")));
    TIDEKV_TRY(of_tokens("token_type", types.size()));
    for (const std::int64_t type : types) {
      vocabulary.token_types.push_back(
          type < INT32_MIN || type > INT32_MAX ? -1 : static_cast<std::int32_t>(type));
    }
  }
  if (metadata.array(key("merges")) != nullptr) {
    TIDEKV_TRY(read_list(metadata, "merges", vocabulary.merges));
  }
  return Ok{};
}

Status read_fields(const FieldReader& fields, GgufVocabulary& vocabulary) {
  TIDEKV_ASSIGN(vocabulary.model, fields.string(key("model"), "the kind of tokenizer"));
  if (fields.find(key("pre")) != nullptr) {
    TIDEKV_ASSIGN(vocabulary.pre, fields.string(key("pre"), "the name of a pre-tokeniser"));
  }
  TIDEKV_ASSIGN(vocabulary.bos_id, token_id(fields, "bos_token_id"));
  TIDEKV_ASSIGN(vocabulary.eos_id, token_id(fields, "eos_token_id"));
  TIDEKV_ASSIGN(vocabulary.unk_id, token_id(fields, "unknown_token_id"));
  TIDEKV_ASSIGN(vocabulary.add_bos, flag(fields, "add_bos_token"));
  TIDEKV_ASSIGN(vocabulary.add_eos, flag(fields, "add_eos_token"));
  TIDEKV_ASSIGN(vocabulary.add_space_prefix, flag(fields, "add_space_prefix"));
  TIDEKV_ASSIGN(vocabulary.remove_extra_whitespaces, flag(fields, "remove_extra_whitespaces"));
  return Ok{};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> read_gguf_tokenizer(const GgufMetadata& metadata) {
  GgufVocabulary vocabulary;
  TIDEKV_TRY(read_fields(metadata.reader(), vocabulary));
  TIDEKV_TRY(read_tokens(metadata, vocabulary));
  if (metadata.array(key("precompiled_charsmap")) != nullptr) {
    TIDEKV_ASSIGN(const auto bytes, metadata.integers(key("precompiled_charsmap")));
    for (const std::int64_t byte : bytes) {
      vocabulary.precompiled_charsmap.push_back(static_cast<char>(byte));
    }
  }
  TIDEKV_ASSIGN(auto tokenizer, make_gguf_tokenizer(vocabulary, metadata.file));
  // Not used to tokenize, but chat templates may name it.
  const FieldReader fields = metadata.reader();
  const IntRange ids = {0, static_cast<std::int64_t>(vocabulary.tokens.size()) - 1};
  TIDEKV_TRY(fields.integer_or(key("padding_token_id"), ids, 0));
  return tokenizer;
}

}  // namespace tidekv
