#include "text/assembled_tokenizer.h"

#include <utility>

namespace tidekv {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30U;  // positions in a piece are int32

Error bad_text(const std::string& message) { return Error{ErrorCode::kInvalidArgument, message}; }

Status check_ranges(std::span<const TextRange> ranges, std::size_t text_len) {
  std::size_t done = 0;
  for (const TextRange& range : ranges) {
    if (range.begin < done || range.end <= range.begin || range.end > text_len) {
      return bad_text("protected range from byte " + std::to_string(range.begin) + " to " +
                      std::to_string(range.end) + " of a text of " + std::to_string(text_len) +
                      " bytes; expected ranges that are not empty, in order and apart");
    }
    done = range.end;
  }
  return Ok{};
}

class AssembledTokenizer final : public Tokenizer {
 public:
  explicit AssembledTokenizer(TokenizerParts parts) : parts_(std::move(parts)) {}

  Result<std::vector<std::int32_t>> encode(std::string_view text,
                                           const EncodeOptions& options) const override {
    TIDEKV_TRY(check_size(text, options));
    TIDEKV_TRY(check_ranges(options.protected_ranges, text.size()));
    std::vector<std::int32_t> ids;
    TIDEKV_TRY(parts_.encoder->append_ids(
        parts_.added_tokens.split(text, {options.parse_special, options.protected_ranges}), ids));
    if (options.add_bos && parts_.bos.added) {
      put_one_bos(ids);
    }
    return ids;
  }

  std::string_view token_bytes(std::int32_t id) const override {
    return parts_.vocabulary->bytes(id);
  }
  std::string_view token_text(std::int32_t id) const override {
    return parts_.vocabulary->text(id);
  }
  std::int32_t find_special(std::string_view content) const override {
    return parts_.added_tokens.find(content);
  }
  std::string normalized(std::string_view text) const override {
    return parts_.encoder->normalized(text);
  }
  bool is_special(std::int32_t id) const override { return parts_.vocabulary->is_special(id); }
  std::int64_t vocab_size() const override { return parts_.vocabulary->size(); }
  std::int32_t bos_token_id() const override { return parts_.bos.id; }

 private:
  Status check_size(std::string_view text, const EncodeOptions& options) const {
    if (text.size() > kMaxTextBytes) {
      return bad_text("a text of " + std::to_string(text.size()) + " bytes; expected at most " +
                      std::to_string(kMaxTextBytes));
    }
    if (options.max_tokens <= 0 || parts_.added_tokens.takes_white_space()) {
      return Ok{};
    }
    const std::size_t fewest = parts_.encoder->fewest_tokens(text);
    if (fewest > static_cast<std::uint64_t>(options.max_tokens)) {
      return bad_text("a text of " + std::to_string(text.size()) + " bytes is more than " +
                      std::to_string(options.max_tokens) + " tokens: at least " +
                      std::to_string(fewest) +
                      " even if every token is the longest there is; expected a shorter text");
    }
    return Ok{};
  }

  void put_one_bos(std::vector<std::int32_t>& ids) const {
    std::size_t num_leading = 0;
    while (num_leading < ids.size() && ids[num_leading] == parts_.bos.id) {
      ++num_leading;
    }
    if (num_leading == 0) {
      ids.insert(ids.begin(), parts_.bos.id);
    } else {
      ids.erase(ids.begin() + 1, ids.begin() + static_cast<std::ptrdiff_t>(num_leading));
    }
  }

  TokenizerParts parts_;
};

}  // namespace

std::unique_ptr<Tokenizer> assemble_tokenizer(TokenizerParts parts) {
  return std::make_unique<AssembledTokenizer>(std::move(parts));
}

Result<TokenizerParts> read_parts(const TokenizerSpec& spec, const std::string& file) {
  TIDEKV_ASSIGN(Vocabulary vocabulary, Vocabulary::build(spec, file));
  TIDEKV_ASSIGN(AddedTokens added_tokens,
                AddedTokens::build(spec.added_tokens, file + ": " + spec.added_tokens_field));
  TokenizerParts parts;
  parts.vocabulary = std::make_unique<const Vocabulary>(std::move(vocabulary));
  parts.added_tokens = std::move(added_tokens);
  return parts;
}

}  // namespace tidekv
