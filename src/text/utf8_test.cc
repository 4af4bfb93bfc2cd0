#include "text/utf8.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tidekv {
namespace {

std::string with_replacement(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    out += step.kind == Utf8Kind::kValid ? text.substr(0, step.length) : std::string_view("?");
    text.remove_prefix(step.length);
  }
  return out;
}

// The right column is bytes.decode("utf-8", errors="replace") with "?" for U+FFFD.
TEST(Utf8, ReplacesWhatPythonReplaces) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"plain", "plain"},
      {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x8A", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x8A"},
      {"a\x80z", "a?z"},
      {"\xC0\xAF", "??"},            // overlong
      {"\xE0\x80\xAF", "???"},       // overlong
      {"\xED\xA0\x80", "???"},       // surrogate
      {"\xF4\x90\x80\x80", "????"},  // beyond U+10FFFF
      {"\xF5\xFF", "??"},
      {"\xE2\x82z", "?z"},  // two of three bytes: one replacement
      {"\xF0\x9F\x98z", "?z"},
      {"\xF0\x9F\xE2\x82\xAC", "?\xE2\x82\xAC"},
      {"z\xF0\x9F\x98", "z?"},
      {"\xC3", "?"},
  };
  for (const auto& [bytes, expected] : cases) {
    EXPECT_EQ(with_replacement(bytes), expected);
  }
}

TEST(Utf8, TellsIncompleteFromInvalid) {
  EXPECT_EQ(utf8_step("\xF0\x9F").kind, Utf8Kind::kIncomplete);
  EXPECT_EQ(utf8_step("\xF0\x9Fz").kind, Utf8Kind::kInvalid);
  EXPECT_EQ(utf8_step("\xED\xA0").kind, Utf8Kind::kInvalid);
}

TEST(Utf8, ValidPrefixEndsBeforeTheFirstDamage) {
  EXPECT_EQ(valid_utf8_prefix("ab\xC3\xA9\xFFz"), 4U);
  EXPECT_EQ(valid_utf8_prefix("\xE2\x82"), 0U);
  EXPECT_EQ(valid_utf8_prefix(""), 0U);
}

TEST(Utf8, WhiteSpaceIncludesUnicodeSpacesButNotTheVowelSeparator) {
  EXPECT_EQ(leading_white_space(" \t\xC2\xA0\xE3\x80\x80x"), 7U);
  EXPECT_EQ(trailing_white_space("x\r\n\xE2\x80\xA8"), 5U);
  EXPECT_EQ(leading_white_space("\xE1\xA0\x8E"), 0U);  // U+180E
}

TEST(Utf8, QuotedTextIsValidAndShort) {
  EXPECT_EQ(quoted_text("a\n\xFF\xC3\xA9"), "\"a\\x0a\\xff\xC3\xA9\"");
  const std::string shortened = quoted_text(std::string(5000, 'x'));
  EXPECT_LT(shortened.size(), 100U);
  EXPECT_TRUE(shortened.ends_with("...\""));
}

}  // namespace
}  // namespace tidekv
