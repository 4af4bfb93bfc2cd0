#include "text/byte_level_encoder.h"

#include <algorithm>
#include <utility>

#include "text/bpe.h"
#include "text/compose.h"
#include "text/pre_tokenizer.h"

namespace tidekv {
namespace {

class ByteLevelEncoder final : public TextEncoder {
 public:
  ByteLevelEncoder(Bpe bpe, PreTokenizer pre_tokenizer, bool compose, std::size_t longest_bytes)
      : bpe_(std::move(bpe)),
        pre_tokenizer_(std::move(pre_tokenizer)),
        compose_(compose),
        longest_bytes_(longest_bytes) {}

  Status append_ids(std::span<const TextSegment> segments,
                    std::vector<std::int32_t>& ids) const override {
    std::size_t text_len = 0;
    for (const TextSegment& segment : segments) {
      text_len += segment.text.size();
    }
    TIDEKV_ASSIGN(MatchScratch match_scratch,
                  MatchScratch::create(text_len * pre_tokenizer_.num_steps()));
    BpeScratch bpe_scratch;
    PreTokenizer::Pieces pieces;
    std::string composed;
    for (const TextSegment& segment : segments) {
      if (segment.id >= 0) {
        ids.push_back(segment.id);
        continue;
      }
      std::string_view text = segment.text;
      if (compose_ && !is_surely_composed(text)) {
        composed = compose(text);
        text = composed;
      }
      TIDEKV_TRY(pre_tokenizer_.split(text, match_scratch, pieces));
      for (const std::string_view piece : pieces.list) {
        bpe_.encode(piece, bpe_scratch, ids);
      }
    }
    return Ok{};
  }

  std::string normalized(std::string_view text) const override {
    return compose_ ? compose(text) : std::string(text);
  }

  std::size_t fewest_tokens(std::string_view text) const override {
    return longest_bytes_ == 0 ? 0 : (bpe_.count_bytes(text) + longest_bytes_ - 1) / longest_bytes_;
  }

 private:
  Bpe bpe_;
  PreTokenizer pre_tokenizer_;
  bool compose_;
  std::size_t longest_bytes_;  // a token stands for at most this many; 0: no such bound
};

// No bound where text can be dropped or become shorter.
std::size_t longest_token(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  const bool drops = std::any_of(
      spec.pre_tokenizer.begin(), spec.pre_tokenizer.end(),
      [](const PreTokenizerStep& step) { return step.behavior == SplitBehavior::kRemoved; });
  return drops || spec.compose ? 0 : vocabulary.longest_bytes();
}

}  // namespace

Result<std::unique_ptr<const TextEncoder>> make_byte_level_encoder(const TokenizerSpec& spec,
                                                                   const Vocabulary& vocabulary,
                                                                   const std::string& file) {
  TIDEKV_ASSIGN(Bpe bpe, Bpe::build(spec, vocabulary, file));
  TIDEKV_ASSIGN(PreTokenizer pre_tokenizer, PreTokenizer::build(spec.pre_tokenizer));
  return std::unique_ptr<const TextEncoder>(std::make_unique<ByteLevelEncoder>(
      std::move(bpe), std::move(pre_tokenizer), spec.compose, longest_token(spec, vocabulary)));
}

}  // namespace tidekv
