// Tokens that are found in the text itself, before the pre-tokeniser cuts it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/text_range.h"
#include "text/tokenizer_spec.h"
#include "tidekv/result.h"

namespace tidekv {

// A stretch of the text: one added token, or text between them.
struct TextSegment {
  std::string_view text;
  std::int32_t id = -1;  // -1: text
};

class AddedTokens {
 public:
  // `where` names the list in errors: "<file>: added_tokens".
  static Result<AddedTokens> build(const std::vector<AddedToken>& tokens, const std::string& where);

  // Where special tokens are recognised.
  struct Recognition {
    bool parse_special = false;                   // false: nowhere
    std::span<const TextRange> protected_ranges;  // not where one would touch these
  };

  // Cuts `text` at added tokens: leftmost first, longest first. Those marked `normalized` are
  // looked for in what the others leave. Without `parse_special` special tokens match (and hide
  // what they overlap) but stay text; one that a protected range forbids does not match at all, so
  // that protected text cannot hide a token beside it.
  std::vector<TextSegment> split(std::string_view text, const Recognition& recognition) const;

  // Id of the token with this content; -1: none.
  std::int32_t find(std::string_view content) const;

  // Whether a token takes white space along, which may be of any length.
  bool takes_white_space() const;

 private:
  // Tokens that are looked for together, sorted by content.
  struct Group {
    std::vector<AddedToken> tokens;
    std::array<bool, 256> starts{};  // first bytes
  };

  // Part of a text, and what is protected in it.
  struct Part {
    std::string_view text;
    std::size_t begin = 0;  // in the whole text
    const Recognition* recognition = nullptr;
  };

  static const AddedToken* longest_at(const Group& group, const Part& part, std::size_t at);
  static void split_by(const Group& group, const Part& part, std::vector<TextSegment>& out);

  Group plain_;
  Group normalized_;
};

}  // namespace tidekv
