#include "text/tokenizer.h"

#include <utility>

#include "base/file.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"
#include "text/vocabulary.h"

namespace tidekv {
namespace {

constexpr std::int64_t kMaxConfigBytes = std::int64_t{64} << 20;
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30U;  // positions in a piece are int32

// What puts a BOS first: nothing, or a token.
struct Bos {
  std::int32_t id = -1;
  bool added = false;  // by encode()
};

class BpeTokenizer final : public Tokenizer {
 public:
  BpeTokenizer(std::unique_ptr<const Vocabulary> vocabulary, Bpe bpe, AddedTokens added_tokens,
               PreTokenizer pre_tokenizer, Bos bos)
      : vocabulary_(std::move(vocabulary)),
        bpe_(std::move(bpe)),
        added_tokens_(std::move(added_tokens)),
        pre_tokenizer_(std::move(pre_tokenizer)),
        bos_(bos) {}

  Result<std::vector<std::int32_t>> encode(std::string_view text,
                                           const EncodeOptions& options) const override {
    if (text.size() > kMaxTextBytes) {
      return Error{ErrorCode::kInvalidArgument, "a text of " + std::to_string(text.size()) +
                                                    " bytes; expected at most " +
                                                    std::to_string(kMaxTextBytes)};
    }
    std::vector<std::int32_t> ids;
    TIDEKV_TRY(append_ids(text, options.parse_special, ids));
    if (options.add_bos && bos_.added) {
      std::size_t num_leading = 0;
      while (num_leading < ids.size() && ids[num_leading] == bos_.id) {
        ++num_leading;
      }
      if (num_leading == 0) {
        ids.insert(ids.begin(), bos_.id);
      } else {
        ids.erase(ids.begin() + 1, ids.begin() + static_cast<std::ptrdiff_t>(num_leading));
      }
    }
    return ids;
  }

  std::string_view token_bytes(std::int32_t id) const override { return vocabulary_->bytes(id); }
  std::string_view token_text(std::int32_t id) const override { return vocabulary_->text(id); }
  bool is_special(std::int32_t id) const override { return vocabulary_->is_special(id); }
  std::int64_t vocab_size() const override { return vocabulary_->size(); }
  std::int32_t bos_token_id() const override { return bos_.id; }

 private:
  Status append_ids(std::string_view text, bool parse_special,
                    std::vector<std::int32_t>& ids) const {
    TIDEKV_ASSIGN(MatchScratch match_scratch,
                  MatchScratch::create(text.size() * pre_tokenizer_.num_steps()));
    BpeScratch bpe_scratch;
    PreTokenizer::Pieces pieces;
    for (const TextSegment& segment : added_tokens_.split(text, parse_special)) {
      if (segment.id >= 0) {
        ids.push_back(segment.id);
        continue;
      }
      TIDEKV_TRY(pre_tokenizer_.split(segment.text, match_scratch, pieces));
      for (const std::string_view piece : pieces.list) {
        bpe_.encode(piece, bpe_scratch, ids);
      }
    }
    return Ok{};
  }

  std::unique_ptr<const Vocabulary> vocabulary_;  // bpe_ points to it
  Bpe bpe_;
  AddedTokens added_tokens_;
  PreTokenizer pre_tokenizer_;
  Bos bos_;
};

// The post-processor's BOS first, else the one that tokenizer_config.json names.
Result<Bos> find_bos(const TokenizerSpec& spec, const Vocabulary& vocabulary,
                     const TokenizerConfig& config, const std::string& file) {
  if (spec.bos_id >= 0) {
    if (vocabulary.text(spec.bos_id) != spec.bos_token) {
      return Error{ErrorCode::kBadFile, file + ": post_processor: " + quoted_text(spec.bos_token) +
                                            " has id " + std::to_string(spec.bos_id) +
                                            ", which is " +
                                            quoted_text(vocabulary.text(spec.bos_id)) +
                                            "; expected the id of that token"};
    }
    return Bos{spec.bos_id, true};
  }
  Bos bos{vocabulary.search(config.bos_token), config.add_bos_token};
  if (bos.id < 0 && bos.added) {
    return Error{ErrorCode::kBadFile, file +
                                          ": tokenizer_config.json wants a BOS before the text "
                                          "but its bos_token " +
                                          quoted_text(config.bos_token) +
                                          " is no token; expected one of this vocabulary"};
  }
  return bos;
}

Result<std::unique_ptr<Tokenizer>> make_tokenizer(std::string_view json,
                                                  const TokenizerConfig& config,
                                                  const std::string& file) {
  TIDEKV_ASSIGN(const TokenizerSpec spec, read_tokenizer_json(json, file));
  TIDEKV_ASSIGN(Vocabulary built, Vocabulary::build(spec, file));
  auto vocabulary = std::make_unique<const Vocabulary>(std::move(built));
  TIDEKV_ASSIGN(Bpe bpe, Bpe::build(spec, *vocabulary, file));
  TIDEKV_ASSIGN(AddedTokens added, AddedTokens::build(spec.added_tokens, file));
  TIDEKV_ASSIGN(PreTokenizer pre_tokenizer, PreTokenizer::build(spec.pre_tokenizer));
  TIDEKV_ASSIGN(const Bos bos, find_bos(spec, *vocabulary, config, file));
  return std::unique_ptr<Tokenizer>(std::make_unique<BpeTokenizer>(
      std::move(vocabulary), std::move(bpe), std::move(added), std::move(pre_tokenizer), bos));
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> load_tokenizer(const std::string& folder) {
  TokenizerConfig config;
  const std::string config_path = join_path(folder, "tokenizer_config.json");
  if (something_at(config_path)) {
    TIDEKV_ASSIGN(const std::string text, read_small_file(config_path, kMaxConfigBytes));
    TIDEKV_ASSIGN(config, read_tokenizer_config(text, config_path));
  }
  const std::string path = join_path(folder, "tokenizer.json");
  TIDEKV_ASSIGN(const MappedFile file, MappedFile::open(path));
  const std::string_view json(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  return make_tokenizer(json, config, path);
}

Result<std::unique_ptr<Tokenizer>> parse_tokenizer_json(std::string_view json,
                                                        const std::string& file) {
  return make_tokenizer(json, {}, file);
}

std::string Detokenizer::next(std::int32_t id) {
  pending_ += tokenizer_->token_bytes(id);
  std::string out;
  std::size_t done = 0;
  while (done < pending_.size()) {
    const std::string_view rest = std::string_view{pending_}.substr(done);
    const Utf8Step step = utf8_step(rest);
    if (step.kind == Utf8Kind::kIncomplete) {
      break;
    }
    out += step.kind == Utf8Kind::kValid ? rest.substr(0, step.length) : kReplacementCharacter;
    done += step.length;
  }
  pending_.erase(0, done);
  return out;
}

std::string Detokenizer::finish() {
  std::string out(pending_.empty() ? std::string_view{} : kReplacementCharacter);
  pending_.clear();
  return out;
}

}  // namespace tidekv
