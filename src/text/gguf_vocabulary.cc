#include "text/gguf_vocabulary.h"

#include <utility>

#include "text/assembled_tokenizer.h"
#include "text/byte_level_encoder.h"
#include "text/known_pre_tokenizers.h"
#include "text/sentencepiece_encoder.h"
#include "text/sentencepiece_spec.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

constexpr std::size_t kMaxTokens = std::size_t{1} << 21U;
constexpr const char* kTokens = "tokenizer.ggml.tokens";
constexpr const char* kMerges = "tokenizer.ggml.merges";

class GgufReader {
 public:
  GgufReader(const GgufVocabulary& vocabulary, const std::string& file)
      : vocabulary_(vocabulary), file_(file) {}

  Result<std::unique_ptr<Tokenizer>> make();

 private:
  Error bad(const std::string& field, const std::string& message) const {
    return Error{ErrorCode::kBadFile, file_ + ": tokenizer.ggml." + field + message};
  }
  PieceType type(std::size_t id) const {
    return vocabulary_.token_types.empty() ? PieceType::kNormal
                                           : static_cast<PieceType>(vocabulary_.token_types[id]);
  }
  Status check_lists() const;
  Status check_id(const std::string& field, std::optional<std::int32_t> id) const;
  bool is_added(std::size_t id) const;
  TokenizerSpec base_spec(TokenSpelling spelling) const;
  Result<Bos> bos(bool fallback) const;
  Status read_merges(TokenizerSpec& spec) const;
  Result<std::unique_ptr<Tokenizer>> make_byte_level() const;
  Result<SentencePieceSpec> sentencepiece_spec() const;
  Result<std::unique_ptr<Tokenizer>> make_sentencepiece() const;

  const GgufVocabulary& vocabulary_;
  const std::string& file_;
};

Status GgufReader::check_lists() const {
  const std::size_t num_tokens = vocabulary_.tokens.size();
  if (num_tokens == 0 || num_tokens > kMaxTokens) {
    return bad("tokens", " holds " + std::to_string(num_tokens) + " tokens; expected 1 to " +
                             std::to_string(kMaxTokens));
  }
  const std::vector<std::int32_t>& types = vocabulary_.token_types;
  if (!types.empty() && types.size() != num_tokens) {
    return bad("token_type", " holds " + std::to_string(types.size()) +
                                 " types; expected one for "
                                 "each of the " +
                                 std::to_string(num_tokens) + " tokens");
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] < 1 || types[i] > 6) {
      return bad("token_type[" + std::to_string(i) + "]",
                 " is " + std::to_string(types[i]) + "; expected 1 to 6");
    }
  }
  TIDEKV_TRY(check_id("bos_token_id", vocabulary_.bos_id));
  TIDEKV_TRY(check_id("eos_token_id", vocabulary_.eos_id));
  TIDEKV_TRY(check_id("unknown_token_id", vocabulary_.unk_id));
  if (vocabulary_.add_eos.value_or(false)) {
    return Error{ErrorCode::kUnsupported,
                 file_ +
                     ": tokenizer.ggml.add_eos_token is true; expected false: text that is to "
                     "be continued cannot end with an end token"};
  }
  return Ok{};
}

Status GgufReader::check_id(const std::string& field, std::optional<std::int32_t> id) const {
  const auto num_tokens = static_cast<std::int64_t>(vocabulary_.tokens.size());
  if (id && (*id < 0 || *id >= num_tokens)) {
    return bad(field, " is " + std::to_string(*id) + "; expected the id of one of the " +
                          std::to_string(num_tokens) + " tokens");
  }
  return Ok{};
}

bool GgufReader::is_added(std::size_t id) const {
  return type(id) == PieceType::kControl || type(id) == PieceType::kUnknown ||
         type(id) == PieceType::kUserDefined;
}

// In the byte alphabet, added tokens are spelled as they are, so they are no tokens of the model.
TokenizerSpec GgufReader::base_spec(TokenSpelling spelling) const {
  TokenizerSpec spec;
  spec.spelling = spelling;
  spec.tokens_field = kTokens;
  spec.merges_field = kMerges;
  spec.added_tokens_field = kTokens;
  for (std::size_t i = 0; i < vocabulary_.tokens.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    if (is_added(i)) {
      spec.added_tokens.push_back({.id = id,
                                   .content = std::string(vocabulary_.tokens[i]),
                                   .special = type(i) != PieceType::kUserDefined});
    }
    if (!is_added(i) || spelling == TokenSpelling::kSpaceMark) {
      spec.tokens.add(vocabulary_.tokens[i]);
      spec.token_ids.push_back(id);
    }
  }
  return spec;
}

// `fallback`: what such models do where the file does not say.
Result<Bos> GgufReader::bos(bool fallback) const {
  const Bos bos{vocabulary_.bos_id.value_or(-1), vocabulary_.add_bos.value_or(fallback)};
  if (bos.added && bos.id < 0) {
    return bad("bos_token_id", " is missing; expected the token that goes before the text");
  }
  return bos;
}

Status GgufReader::read_merges(TokenizerSpec& spec) const {
  for (std::size_t i = 0; i < vocabulary_.merges.size(); ++i) {
    const std::string_view merge = vocabulary_.merges[i];
    const std::size_t space = merge.find(' ');
    if (space == std::string_view::npos || merge.find(' ', space + 1) != std::string_view::npos) {
      return bad("merges[" + std::to_string(i) + "]",
                 " is " + quoted_text(merge) + "; expected two tokens with one space between");
    }
    spec.merges.add(merge.substr(0, space));
    spec.merges.add(merge.substr(space + 1));
  }
  return Ok{};
}

Result<std::unique_ptr<Tokenizer>> GgufReader::make_byte_level() const {
  TIDEKV_ASSIGN(const KnownPreTokenizer known,
                find_pre_tokenizer(vocabulary_.pre, file_ + ": tokenizer.ggml.pre"));
  TokenizerSpec spec = base_spec(TokenSpelling::kByteAlphabet);
  spec.pre_tokenizer = known.steps;
  spec.ignore_merges = known.ignore_merges;
  spec.compose = known.compose;
  if (vocabulary_.merges.size() == 0) {
    return bad("merges", " is missing; expected the merges of a byte-level vocabulary");
  }
  TIDEKV_TRY(read_merges(spec));
  TIDEKV_ASSIGN(TokenizerParts parts, read_parts(spec, file_));
  TIDEKV_ASSIGN(parts.encoder, make_byte_level_encoder(spec, *parts.vocabulary, file_));
  TIDEKV_ASSIGN(parts.bos, bos(known.add_bos));
  return assemble_tokenizer(std::move(parts));
}

Result<SentencePieceSpec> GgufReader::sentencepiece_spec() const {
  const std::size_t num_tokens = vocabulary_.tokens.size();
  if (vocabulary_.scores.size() != num_tokens) {
    return bad("scores", " holds " + std::to_string(vocabulary_.scores.size()) +
                             " numbers; expected one for each of the " +
                             std::to_string(num_tokens) + " tokens");
  }
  SentencePieceSpec spec;
  spec.base = base_spec(TokenSpelling::kSpaceMark);
  spec.scores = vocabulary_.scores;
  spec.model = vocabulary_.model == "t5" ? SentencePieceSpec::Model::kUnigram
                                         : SentencePieceSpec::Model::kBpe;
  spec.base.space_prefix =
      vocabulary_.add_space_prefix.value_or(true) ? SpacePrefix::kEvery : SpacePrefix::kNever;
  spec.remove_extra_whitespace = vocabulary_.remove_extra_whitespaces.value_or(false);
  spec.charsmap = vocabulary_.precompiled_charsmap;
  spec.charsmap_field = "tokenizer.ggml.precompiled_charsmap";
  for (std::size_t i = 0; i < num_tokens; ++i) {
    // User-defined tokens are found in the text itself and never come out of what remains.
    spec.types.push_back(type(i) == PieceType::kUserDefined ? PieceType::kUnused : type(i));
    spec.byte_fallback = spec.byte_fallback || type(i) == PieceType::kByte;
    if (type(i) == PieceType::kUnknown && spec.unknown_id < 0) {
      spec.unknown_id = static_cast<std::int32_t>(i);
    }
  }
  spec.unknown_id = vocabulary_.unk_id.value_or(spec.unknown_id);
  return spec;
}

Result<std::unique_ptr<Tokenizer>> GgufReader::make_sentencepiece() const {
  TIDEKV_ASSIGN(const SentencePieceSpec spec, sentencepiece_spec());
  TIDEKV_ASSIGN(TokenizerParts parts, read_parts(spec.base, file_));
  TIDEKV_ASSIGN(parts.encoder, make_sentencepiece_encoder(spec, *parts.vocabulary, file_));
  TIDEKV_ASSIGN(parts.bos, bos(vocabulary_.model == "llama"));
  return assemble_tokenizer(std::move(parts));
}

Result<std::unique_ptr<Tokenizer>> GgufReader::make() {
  TIDEKV_TRY(check_lists());
  if (vocabulary_.model == "gpt2") {
    return make_byte_level();
  }
  if (vocabulary_.model == "llama" || vocabulary_.model == "t5") {
    return make_sentencepiece();
  }
  return Error{ErrorCode::kUnsupported,
               file_ + ": tokenizer.ggml.model is " +
                   (vocabulary_.model.empty() ? "missing" : quoted_text(vocabulary_.model)) +
                   "; expected gpt2, llama or t5"};
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> make_gguf_tokenizer(const GgufVocabulary& vocabulary,
                                                       const std::string& file) {
  return GgufReader(vocabulary, file).make();
}

}  // namespace tidekv
