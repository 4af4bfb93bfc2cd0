#include "text/split_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "text/pattern_syntax.h"

namespace tidekv {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<std::vector<std::string>> all_matches(std::string_view pattern, std::string_view text) {
  TIDEKV_ASSIGN(const SplitPattern compiled, SplitPattern::compile(pattern, "f: pattern"));
  TIDEKV_ASSIGN(MatchScratch scratch, MatchScratch::create(text.size()));
  std::vector<std::string> matches;
  std::size_t done = 0;
  while (done < text.size()) {
    TIDEKV_ASSIGN(const std::optional<SplitPattern::Match> match,
                  compiled.find(text, done, scratch));
    if (!match) {
      break;
    }
    matches.emplace_back(text.substr(match->begin, match->end - match->begin));
    done = match->end;
  }
  return matches;
}

std::vector<std::string> matches_of(std::string_view pattern, std::string_view text) {
  auto matches = all_matches(pattern, text);
  EXPECT_TRUE(matches.ok()) << pattern << ": " << matches.error().message;
  return matches.ok() ? matches.value() : std::vector<std::string>{};
}

std::string refusal_of(std::string_view pattern) {
  const auto compiled = SplitPattern::compile(pattern, "f: pattern");
  EXPECT_FALSE(compiled.ok()) << pattern;
  return compiled.ok() ? "" : compiled.error().message;
}

TEST(SplitPattern, WhiteSpaceIsUnicodeWhiteSpace) {
  EXPECT_THAT(matches_of("\\s+", "a \xC2\x85\xE3\x80\x80z"), ElementsAre(" \xC2\x85\xE3\x80\x80"));
  EXPECT_THAT(matches_of("\\s+", "\xE1\xA0\x8E"), ElementsAre());  // U+180E is none
  EXPECT_THAT(matches_of("[^\\s]+", "\xE1\xA0\x8E\xC2\xA0"), ElementsAre("\xE1\xA0\x8E"));
}

TEST(SplitPattern, CaseIsIgnoredOnlyInsideTheGroup) {
  EXPECT_THAT(matches_of("'(?i:s|ll)x", "'Sx 'sX 'LLx 'lLx"), ElementsAre("'Sx", "'LLx", "'lLx"));
  EXPECT_THAT(matches_of("(?i:'s)", "'\xC5\xBF"), ElementsAre("'\xC5\xBF"));  // long s folds to s
}

TEST(SplitPattern, AlternativesAreTriedInOrder) {
  EXPECT_THAT(matches_of("a|ab|b", "abb"), ElementsAre("a", "b", "b"));
}

TEST(SplitPattern, RepeatsAreGreedyLazyOrPossessiveAsWritten) {
  EXPECT_THAT(matches_of("a{1,3}", "aaaaa"), ElementsAre("aaa", "aa"));
  EXPECT_THAT(matches_of("a{1,3}?", "aa"), ElementsAre("a", "a"));
  EXPECT_THAT(matches_of("a+?b", "aab"), ElementsAre("aab"));
  EXPECT_THAT(matches_of("a++ab|b", "aab"), ElementsAre("b"));
  EXPECT_THAT(matches_of("(?:ab){2}", "abababab"), ElementsAre("abab", "abab"));
}

TEST(SplitPattern, LooksAroundWithinThePieceOnly) {
  EXPECT_THAT(matches_of("\\s+(?!\\S)", "a   b  "), ElementsAre("  ", "  "));
  EXPECT_THAT(matches_of("(?<=a)b", "bab"), ElementsAre("b"));
}

TEST(SplitPattern, SignsMeanThemselves) {
  EXPECT_THAT(matches_of("[#\\-\\]\\[ ]|#|\\||\\u00e9|\\x{1F600}|\\x41",
                         "#-][ |\xC3\xA9\xF0\x9F\x98\x80"
                         "A"),
              ElementsAre("#", "-", "]", "[", " ", "|", "\xC3\xA9", "\xF0\x9F\x98\x80", "A"));
}

TEST(SplitPattern, DotIsAnythingButALineFeed) {
  EXPECT_THAT(matches_of(".", "a\r\n"), ElementsAre("a", "\r"));
}

TEST(SplitPattern, ScriptsAreScriptsNotScriptExtensions) {
  EXPECT_THAT(matches_of("\\p{Han}+", "\xE4\xB8\x80\xE3\x80\x81"), ElementsAre("\xE4\xB8\x80"));
}

TEST(SplitPattern, RefusesByNameWhatTheEnginesDisagreeOn) {
  for (const char* pattern :
       {"^a",          "a$",      "\\ba",        "\\w+",        "\\h",
        "\\R",         "\\X",     "\\G",         "\\K",         "(a)\\1",
        "(?i)a",       "(?<n>a)", "(?x: a)",     "(?m:a)",      "(?#c)a",
        "(*ACCEPT)a",  "[a&&b]",  "[[:alpha:]]", "[a[b]]",      "[]a]",
        "[a",          "a**",     "a{1,2}+",     "a{2}?",       "a{,2}",
        "a{0}",        "a{3,2}",  "a{999}",      "a{",          "*a",
        "(a",          "a)",      "(?i:ss)",     "(?i:[fx]i)",  "(?i:\xC3\xA9)",
        "(?i:\\p{L})", "(?i:s+)", "(?i:[^s])",   "(?i:(?:a))",  "\\p{Foo}",
        "\\p{^L}",     "\\pL",    "\\p{L",       "\\x{110000}", "\\x{D800}",
        "\\x80",       "\\u12",   "\\",          "[\\d-z]",     "[a-\\d]",
        "[a-c-e]",     "[z-a]",   "(?!a)+b",     "(?<=a+)b",    "(?P<n>a)",
        "a\\Qb\\E",    "\\C",     "\xFF"}) {
    const std::string message = refusal_of(pattern);
    EXPECT_THAT(message, HasSubstr("f: pattern")) << pattern;
  }
  EXPECT_THAT(refusal_of("a\\w"), HasSubstr("\"\\w\" at byte 1"));
}

TEST(SplitPattern, RefusesPatternsThatCanMatchNothing) {
  for (const char* pattern : {"a*", "a|", "(?:)", "(?=a)", "a?b?"}) {
    EXPECT_THAT(refusal_of(pattern), HasSubstr("empty")) << pattern;
  }
}

TEST(SplitPattern, RefusesPatternsThatAreTooLongOrTooDeep) {
  EXPECT_THAT(refusal_of(std::string(5000, 'a')), HasSubstr("4096"));
  EXPECT_THAT(refusal_of(""), HasSubstr("expected 1 to"));
  EXPECT_THAT(refusal_of(std::string(100, '(') + "a" + std::string(100, ')')),
              HasSubstr("nested deeper"));
}

// Each would take years, or time quadratic in the text, if nothing counted the work.
TEST(SplitPattern, StopsPatternsThatTakeTooLong) {
  const std::string text = std::string(200000, 'a') + "cb";  // the "b" defeats an early way out
  for (const char* pattern : {"(?:a+)+b", "(?:a|aa)+b", "(?:a+a+)+b", "a*b", "a+a+b", "(?=a*b)a",
                              "a(?!a*c)b", "(?:a{1,255}){1,255}b"}) {
    const auto matches = all_matches(pattern, text);
    ASSERT_FALSE(matches.ok()) << pattern;
    EXPECT_THAT(matches.error().message, HasSubstr("f: pattern: matching the pattern failed"));
  }
}

TEST(SplitPattern, TakesAMegabyteInOneMatch) {
  const std::string word(std::size_t{1} << 20U, 'a');
  EXPECT_THAT(matches_of("[^\\r\\n\\p{L}]?\\p{L}+|\\s+(?!\\S)|\\s+", word), ElementsAre(word));
  EXPECT_THAT(matches_of("(?:[a-z]\\p{M}*)+", word.substr(0, 100000)),
              ElementsAre(word.substr(0, 100000)));
}

TEST(PatternSyntax, LiteralsAreQuoted) {
  const std::string signs = "a.b*c[d]\\Q\xC3\xA9 #";
  EXPECT_THAT(matches_of(pattern_for_literal(signs), "x" + signs + "x"), ElementsAre(signs));
}

}  // namespace
}  // namespace tidekv
