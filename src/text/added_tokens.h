// Tokens that are found in the text itself, before the pre-tokeniser cuts it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
  static Result<AddedTokens> build(const std::vector<AddedToken>& tokens, const std::string& file);

  // Cuts `text` at added tokens: leftmost first, longest first. Those marked `normalized` are
  // looked for in what the others leave. Special tokens match (and hide what they overlap) but stay
  // text unless `parse_special`.
  std::vector<TextSegment> split(std::string_view text, bool parse_special) const;

 private:
  // Tokens that are looked for together, sorted by content.
  struct Group {
    std::vector<AddedToken> tokens;
    std::array<bool, 256> starts{};  // first bytes
  };

  static const AddedToken* longest_at(const Group& group, std::string_view text);
  static void split_by(const Group& group, std::string_view text, bool parse_special,
                       std::vector<TextSegment>& out);

  Group plain_;
  Group normalized_;
};

}  // namespace tidekv
