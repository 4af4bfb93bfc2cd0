// What SentencePiece does to a text before it is cut: character map, spaces to marks, prefix.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/sentencepiece_spec.h"
#include "tidekv/result.h"

namespace tidekv {

class PieceNormalizer {
 public:
  static Result<PieceNormalizer> build(const SentencePieceSpec& spec, const std::string& file);

  // `prefixed`: put a space in front, if the text has anything else. Bytes that are not valid UTF-8
  // stay as they are.
  std::string normalize(std::string_view text, bool prefixed) const;

  // Whether the result can be any number of times shorter than the text.
  bool can_shorten() const { return remove_extra_whitespace_ || !units_.empty(); }

 private:
  // The start of a text and what it becomes.
  struct Step {
    std::size_t length = 0;
    std::string_view result;
  };
  Step step(std::string_view text) const;
  Status read_charsmap(std::string_view charsmap, const std::string& where);

  bool prefix_unless_space_ = false;
  bool remove_extra_whitespace_ = false;
  std::vector<std::uint32_t> units_;  // a double array trie; empty: no character map
  std::string results_;               // its values point to zero-terminated texts in here
};

}  // namespace tidekv
