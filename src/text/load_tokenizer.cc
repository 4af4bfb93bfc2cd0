// From a folder's files to a tokenizer.
#include <cstdint>
#include <map>
#include <utility>

#include "base/file.h"
#include "text/assembled_tokenizer.h"
#include "text/byte_level_encoder.h"
#include "text/sentencepiece_encoder.h"
#include "text/sentencepiece_model.h"
#include "text/space_mark.h"
#include "text/tiktoken_ranks.h"
#include "text/tokenizer.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

constexpr std::int64_t kMaxConfigBytes = std::int64_t{64} << 20;

// What tokenizer_config.json adds.
struct FolderConfig {
  TokenizerConfig config;
  std::vector<AddedToken> added_tokens;  // only where there is no tokenizer.json
};

// The token that tokenizer_config.json names, else the file's own. `fallback`: what such files want
// where tokenizer_config.json does not say.
Result<Bos> find_bos(const TokenizerSpec& spec, const Vocabulary& vocabulary,
                     const TokenizerConfig& config, bool fallback, const std::string& file) {
  Bos bos{spec.bos_id, false};
  if (!config.bos_token.empty()) {
    bos.id = vocabulary.search(config.bos_token);
  }
  bos.added = config.add_bos_token.value_or(fallback && bos.id >= 0);
  if (bos.id < 0 && bos.added) {
    return Error{ErrorCode::kBadFile, file +
                                          ": tokenizer_config.json wants a BOS before the text "
                                          "but its bos_token " +
                                          quoted_text(config.bos_token) +
                                          " is no token; expected one of this vocabulary"};
  }
  return bos;
}

// The post-processor's BOS first.
Result<Bos> find_bos_of_json(const TokenizerSpec& spec, const Vocabulary& vocabulary,
                             const TokenizerConfig& config, const std::string& file) {
  if (spec.bos_id < 0) {
    const bool fallback = spec.spelling == TokenSpelling::kSpaceMark;
    return find_bos(spec, vocabulary, config, fallback, file);
  }
  if (vocabulary.text(spec.bos_id) != spec.bos_token) {
    return Error{ErrorCode::kBadFile, file + ": post_processor: " + quoted_text(spec.bos_token) +
                                          " has id " + std::to_string(spec.bos_id) + ", which is " +
                                          quoted_text(vocabulary.text(spec.bos_id)) +
                                          "; expected the id of that token"};
  }
  return Bos{spec.bos_id, true};
}

// A tokenizer.json of SentencePiece's kind.
Result<std::unique_ptr<const TextEncoder>> make_space_mark_encoder(TokenizerSpec base,
                                                                   const Vocabulary& vocabulary,
                                                                   const std::string& file) {
  SentencePieceSpec spec;
  spec.base = std::move(base);
  spec.byte_fallback = true;
  for (std::size_t i = 0; i < spec.base.tokens.size(); ++i) {
    spec.types.push_back(byte_of_token(spec.base.tokens[i]) < 0 ? PieceType::kNormal
                                                                : PieceType::kByte);
  }
  return make_sentencepiece_encoder(spec, vocabulary, file);
}

Result<std::unique_ptr<Tokenizer>> make_from_json(std::string_view json,
                                                  const TokenizerConfig& config,
                                                  const std::string& file) {
  TIDEKV_ASSIGN(TokenizerSpec spec, read_tokenizer_json(json, file));
  TIDEKV_ASSIGN(TokenizerParts parts, read_parts(spec, file));
  TIDEKV_ASSIGN(parts.bos, find_bos_of_json(spec, *parts.vocabulary, config, file));
  if (spec.spelling == TokenSpelling::kSpaceMark) {
    TIDEKV_ASSIGN(parts.encoder, make_space_mark_encoder(std::move(spec), *parts.vocabulary, file));
  } else {
    TIDEKV_ASSIGN(parts.encoder, make_byte_level_encoder(spec, *parts.vocabulary, file));
  }
  return assemble_tokenizer(std::move(parts));
}

// Those of tokenizer_config.json win over the file's own.
void add_tokens(const std::vector<AddedToken>& tokens, TokenizerSpec& spec) {
  std::map<std::int32_t, std::size_t> own;  // the place of each id
  for (std::size_t i = 0; i < spec.added_tokens.size(); ++i) {
    own.emplace(spec.added_tokens[i].id, i);
  }
  for (const AddedToken& token : tokens) {
    if (const auto same = own.find(token.id); same != own.end()) {
      spec.added_tokens[same->second] = token;
    } else {
      own.emplace(token.id, spec.added_tokens.size());
      spec.added_tokens.push_back(token);
    }
  }
}

Result<std::unique_ptr<Tokenizer>> make_from_sentencepiece(std::string_view bytes,
                                                           const FolderConfig& folder,
                                                           const std::string& file) {
  TIDEKV_ASSIGN(SentencePieceSpec spec, read_sentencepiece_model(bytes, file));
  if (!folder.config.add_prefix_space.value_or(true)) {
    spec.base.space_prefix = SpacePrefix::kNever;
  } else if (!folder.config.legacy.value_or(true) &&
             spec.base.space_prefix == SpacePrefix::kEvery) {
    spec.base.space_prefix = SpacePrefix::kFirst;
    spec.base.prefix_unless_space = true;
  }
  add_tokens(folder.added_tokens, spec.base);
  TIDEKV_ASSIGN(TokenizerParts parts, read_parts(spec.base, file));
  TIDEKV_ASSIGN(parts.encoder, make_sentencepiece_encoder(spec, *parts.vocabulary, file));
  TIDEKV_ASSIGN(parts.bos, find_bos(spec.base, *parts.vocabulary, folder.config, true, file));
  return assemble_tokenizer(std::move(parts));
}

// Llama 3's special tokens where tokenizer_config.json lists none.
Result<std::unique_ptr<Tokenizer>> make_from_ranks(std::string_view bytes,
                                                   const FolderConfig& folder,
                                                   const std::string& file) {
  TIDEKV_ASSIGN(TokenizerSpec spec, read_tiktoken_ranks(bytes, file));
  spec.added_tokens = folder.added_tokens;
  if (spec.added_tokens.empty()) {
    spec.bos_id = static_cast<std::int32_t>(spec.tokens.size());
    spec.added_tokens = llama3_special_tokens(spec.bos_id);
    spec.bos_token = spec.added_tokens.front().content;
  }
  TIDEKV_ASSIGN(TokenizerParts parts, read_parts(spec, file));
  TIDEKV_ASSIGN(parts.encoder, make_byte_level_encoder(spec, *parts.vocabulary, file));
  TIDEKV_ASSIGN(parts.bos, find_bos(spec, *parts.vocabulary, folder.config, true, file));
  return assemble_tokenizer(std::move(parts));
}

Result<std::unique_ptr<Tokenizer>> make_from_model(std::string_view bytes,
                                                   const FolderConfig& folder,
                                                   const std::string& file) {
  if (is_sentencepiece_model(bytes)) {
    return make_from_sentencepiece(bytes, folder, file);
  }
  if (is_tiktoken_ranks(bytes)) {
    return make_from_ranks(bytes, folder, file);
  }
  return Error{ErrorCode::kBadFile,
               file + ": begins with " + quoted_text(bytes.substr(0, 16)) +
                   "; expected a SentencePiece model, or tiktoken's ranks (on each line a token in "
                   "base64 and its rank)"};
}

std::string_view text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_tokenizer(const std::string& folder) {
  FolderConfig config;
  const std::string json_path = join_path(folder, "tokenizer.json");
  const bool has_json = something_at(json_path);
  const std::string config_path = join_path(folder, "tokenizer_config.json");
  if (something_at(config_path)) {
    TIDEKV_ASSIGN(const std::string text, read_small_file(config_path, kMaxConfigBytes));
    TIDEKV_ASSIGN(config.config, read_tokenizer_config(text, config_path));
    if (!has_json) {
      TIDEKV_ASSIGN(config.added_tokens, read_added_tokens_decoder(text, config_path));
    }
  }
  if (has_json) {
    TIDEKV_ASSIGN(const MappedFile file, MappedFile::open(json_path));
    return make_from_json(text_of(file), config.config, json_path);
  }
  const std::string model_path = join_path(folder, "tokenizer.model");
  if (something_at(model_path)) {
    TIDEKV_ASSIGN(const MappedFile file, MappedFile::open(model_path));
    return make_from_model(text_of(file), config, model_path);
  }
  return Error{ErrorCode::kNotFound,
               json_path +
                   " is missing, and so is tokenizer.model; expected one of the two there: "
                   "tokenizer.json, or a tokenizer.model of SentencePiece or with "
                   "tiktoken's ranks"};
}

Result<std::unique_ptr<Tokenizer>> parse_tokenizer_json(std::string_view json,
                                                        const std::string& file) {
  return make_from_json(json, {}, file);
}

Result<std::unique_ptr<Tokenizer>> parse_tokenizer_model(std::string_view bytes,
                                                         const std::string& file) {
  return make_from_model(bytes, {}, file);
}

}  // namespace tidekv
