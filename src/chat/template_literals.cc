#include "chat/template_literals.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "chat/template_text.h"

namespace tidekv {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_digit(char c) {
  if (is_digit(c)) {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

Error bad(std::string what) { return Error{ErrorCode::kBadFile, std::move(what)}; }

// \xNN, \uNNNN, \UNNNNNNNN: `num_digits` after the letter.
Status append_hex_escape(std::string_view body, std::size_t& at, std::size_t num_digits,
                         std::string& out) {
  std::int64_t code = 0;
  for (std::size_t i = 0; i < num_digits; ++i) {
    const int digit = at + i < body.size() ? hex_digit(body[at + i]) : -1;
    if (digit < 0) {
      return bad("an escape in a string needs " + std::to_string(num_digits) +
                 " hexadecimal digits");
    }
    code = code * 16 + digit;
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
    return bad("an escape in a string names no character");
  }
  out += utf8_of(static_cast<std::int32_t>(code));
  at += num_digits;
  return Ok{};
}

void append_octal_escape(std::string_view body, std::size_t& at, std::string& out) {
  std::int32_t code = 0;
  for (int i = 0; i < 3 && at < body.size() && body[at] >= '0' && body[at] <= '7'; ++i) {
    code = code * 8 + (body[at++] - '0');
  }
  out += utf8_of(code);
}

// `at` is behind the backslash.
Status append_escape(std::string_view body, std::size_t& at, std::string& out) {
  constexpr std::string_view kLetters = "\\'\"abfnrtv";
  constexpr std::string_view kMeanings = "\\'\"\a\b\f\n\r\t\v";
  const char letter = body[at];
  if (letter >= '0' && letter <= '7') {
    append_octal_escape(body, at, out);
    return Ok{};
  }
  ++at;
  if (const std::size_t i = kLetters.find(letter); i != std::string_view::npos) {
    out += kMeanings[i];
    return Ok{};
  }
  switch (letter) {
    case '\n':
      return Ok{};  // a continued line
    case 'x':
      return append_hex_escape(body, at, 2, out);
    case 'u':
      return append_hex_escape(body, at, 4, out);
    case 'U':
      return append_hex_escape(body, at, 8, out);
    case 'N':
      return bad("character names (\\N{...}) in strings are not supported");
    default:
      out += '\\';
      out += letter;
      return Ok{};
  }
}

// Digits with single underscores between them, from `at`; their length.
std::size_t digits_length(std::string_view source, std::size_t at) {
  std::size_t end = at;
  while (end < source.size() &&
         (is_digit(source[end]) || (source[end] == '_' && end > at && is_digit(source[end - 1]) &&
                                    end + 1 < source.size() && is_digit(source[end + 1])))) {
    ++end;
  }
  return end - at;
}

std::size_t fraction_length(std::string_view source, std::size_t at) {
  if (at >= source.size() || source[at] != '.') {
    return 0;
  }
  const std::size_t digits = digits_length(source, at + 1);
  return digits == 0 ? 0 : 1 + digits;
}

std::size_t exponent_length(std::string_view source, std::size_t at) {
  if (at >= source.size() || (source[at] != 'e' && source[at] != 'E')) {
    return 0;
  }
  const bool sign = at + 1 < source.size() && (source[at + 1] == '+' || source[at + 1] == '-');
  const std::size_t digits = digits_length(source, at + (sign ? 2 : 1));
  return digits == 0 ? 0 : (sign ? 2 : 1) + digits;
}

}  // namespace

Result<std::string> decode_string_literal(std::string_view body) {
  std::string out;
  std::size_t at = 0;
  while (at < body.size()) {
    if (body[at] != '\\') {
      out += body[at++];
      continue;
    }
    ++at;  // the lexer lets no literal end in a backslash
    TIDEKV_TRY(append_escape(body, at, out));
  }
  return out;
}

Result<std::size_t> read_number_literal(std::string_view source, bool after_dot, Token& token) {
  const std::size_t whole = digits_length(source, 0);
  const std::size_t fraction = after_dot ? 0 : fraction_length(source, whole);
  const std::size_t exponent = after_dot ? 0 : exponent_length(source, whole + fraction);
  const std::size_t length = whole + fraction + exponent;
  std::string digits(source.substr(0, length));
  digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
  if (fraction + exponent > 0) {
    token.kind = TokenKind::kFloat;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), token.number);
    if (end.ec != std::errc() || !std::isfinite(token.number)) {
      return bad("the number " + digits.substr(0, 40) + " is outside the range of a double");
    }
    return length;
  }
  if (digits.size() > 1 && digits[0] == '0' && digits.find_first_not_of('0') != std::string::npos) {
    return bad("a whole number must not start with 0");
  }
  token.kind = TokenKind::kInteger;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), token.integer);
  if (end.ec != std::errc()) {
    return bad("the number " + digits.substr(0, 40) + " does not fit 64 bits");
  }
  return length;
}

}  // namespace tidekv
