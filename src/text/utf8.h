// UTF-8, one character at a time, for text that may be damaged.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tidekv {

enum class Utf8Kind : std::uint8_t {
  kValid,
  kInvalid,     // these bytes can never become a character
  kIncomplete,  // the text ends inside what may still become a character
};

struct Utf8Step {
  Utf8Kind kind = Utf8Kind::kInvalid;
  std::uint8_t length = 0;  // bytes it spans, >= 1
};

// What `text` (not empty) starts with. An invalid or incomplete step spans the longest prefix that
// some valid character has, at least one byte: what Python replaces by one U+FFFD.
Utf8Step utf8_step(std::string_view text);

// Bytes at the start of `text` that are valid UTF-8.
std::size_t valid_utf8_prefix(std::string_view text);

// Bytes of Unicode white space at the start, or at the end, of `text`.
std::size_t leading_white_space(std::string_view text);
std::size_t trailing_white_space(std::string_view text);

// `text` in double quotes for an error message: shortened, control characters and damaged bytes
// shown as \xNN, so that the message is valid UTF-8 on one line.
std::string quoted_text(std::string_view text);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace tidekv
