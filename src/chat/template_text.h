// Strings of a chat template that know which of their bytes a message contributed.
//
// The mark travels with the bytes through every operation, so that the rendered chat can say where
// the tokenizer must not see special tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/text_range.h"

namespace tidekv {

// Immutable; the bytes and marks live in the messages, the template or a ValueStore.
struct MarkedText {
  std::string_view bytes;
  std::span<const TextRange> marks =
      {};               // from messages; ascending, neither overlapping nor touching
  bool markup = false;  // went through `safe`
};

// Grows a marked text.
class TextBuilder {
 public:
  void append(std::string_view bytes, bool marked = false);
  void append(const MarkedText& text) { append(text, 0, text.bytes.size()); }
  // Bytes [begin, end) of `text`.
  void append(const MarkedText& text, std::size_t begin, std::size_t end);
  // Empties this and gives what it held.
  void take(std::string& bytes, std::vector<TextRange>& marks);

  std::size_t size() const { return bytes_.size(); }
  MarkedText view() const { return {bytes_, marks_}; }

 private:
  void mark(std::size_t begin, std::size_t end);

  std::string bytes_;
  std::vector<TextRange> marks_;
};

// Whether a message contributed byte `i`.
bool is_marked(const MarkedText& text, std::size_t i);

// One character: its code point and bytes. A damaged byte is a character by itself, code point -1.
struct Character {
  std::int32_t code = -1;
  std::size_t length = 1;
};

// The first character of `text`, which is not empty.
Character first_character(std::string_view text);
std::size_t num_characters(std::string_view text);
// Bytes of the first `count` characters; all of them if there are fewer.
std::size_t bytes_of_characters(std::string_view text, std::size_t count);

std::string utf8_of(std::int32_t code);

// What Python's str.isspace() says.
bool is_python_space(std::int32_t code);
// Bytes of white space at the start, or the end, of `text`.
std::size_t python_space_at_start(std::string_view text);
std::size_t python_space_at_end(std::string_view text);

// Where `part` first occurs in `text` at or after `from`; npos if nowhere. Linear time.
std::size_t find_text(std::string_view text, std::string_view part, std::size_t from);

// `text` for an error message: control characters and damaged bytes as \xNN, cut after 400 bytes.
std::string printable(std::string_view text);

}  // namespace tidekv
