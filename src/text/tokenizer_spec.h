// What a tokenizer's file says, as plain data; tokenizer_json.h and its like fill it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidekv {

// Many short texts in one allocation.
class TextList {
 public:
  void add(std::string_view text) {
    texts_ += text;
    ends_.push_back(static_cast<std::uint32_t>(texts_.size()));
  }
  std::size_t size() const { return ends_.size(); }
  std::string_view operator[](std::size_t i) const {
    const std::uint32_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view{texts_}.substr(begin, ends_[i] - begin);
  }

 private:
  std::string texts_;  // below 4 GiB: the file that they come from is much smaller
  std::vector<std::uint32_t> ends_;
};

// A token matched in the text itself, before the pre-tokeniser sees it.
struct AddedToken {
  std::int32_t id = -1;
  std::string content;
  bool lstrip = false;      // takes the white space before it along
  bool rstrip = false;      // takes the white space after it along
  bool normalized = false;  // matched after all those that are not
  bool special = false;
};

enum class SplitBehavior : std::uint8_t {
  kIsolated,  // matches and what lies between them are pieces
  kRemoved,   // only what lies between matches
};

// One step of the pre-tokeniser: cuts every piece, or puts a space before every piece without one.
struct PreTokenizerStep {
  enum class Kind : std::uint8_t { kSplit, kPrefixSpace };
  Kind kind = Kind::kSplit;
  std::string pattern;  // in Oniguruma's syntax
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;  // swaps matches and what lies between them
  std::string field;    // names the step in errors
};

// How tokens are spelled.
enum class TokenSpelling : std::uint8_t {
  kByteAlphabet,  // byte_alphabet.h
  kSpaceMark,     // U+2581 is a space, "<0x0A>" a byte that no other token has
};

enum class MergeSource : std::uint8_t {
  kListed,  // TokenizerSpec::merges
  kRanks,   // ids are ranks: tokens that were merged first have the lower ones
};

// Where SentencePiece's text gets a space in front.
enum class SpacePrefix : std::uint8_t {
  kNever,
  kFirst,  // of the text's beginning, unless an added token stands there
  kEvery,  // of every stretch between added tokens
};

struct TokenizerSpec {
  TextList tokens;                      // of the model
  std::vector<std::int32_t> token_ids;  // of `tokens`, in the same order
  TokenSpelling spelling = TokenSpelling::kByteAlphabet;
  MergeSource merge_source = MergeSource::kListed;
  TextList merges;               // left and right part alternate; the first pair ranks highest
  bool ignore_merges = false;    // a piece that is a token as a whole is not merged
  bool needs_all_bytes = false;  // else bytes of no ordinary text may lack a token
  bool compose = false;          // text is brought to Unicode's form NFC first
  SpacePrefix space_prefix = SpacePrefix::kNever;  // with space marks only
  bool prefix_unless_space = false;  // no second space where the text has one in front
  std::vector<AddedToken> added_tokens;
  std::vector<PreTokenizerStep> pre_tokenizer;
  std::string bos_token;  // what the post-processor puts first; empty: nothing
  std::int32_t bos_id = -1;

  // What errors call the three lists.
  std::string tokens_field = "model.vocab";
  std::string merges_field = "model.merges";
  std::string added_tokens_field = "added_tokens";
};

}  // namespace tidekv
