#include "text/added_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tidekv {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kLongest = 256;  // bytes
const AddedTokens::Recognition kEverywhere = {.parse_special = true, .protected_ranges = {}};

// "<x", "<<x", ... up to the longest that is allowed: all begin as a row of "<" does.
std::vector<AddedToken> near_misses() {
  std::vector<AddedToken> tokens;
  for (std::size_t len = 1; len < kLongest; ++len) {
    tokens.push_back(
        {.id = static_cast<std::int32_t>(len), .content = std::string(len, '<') + "x"});
  }
  return tokens;
}

TEST(AddedTokens, FindTheLongestOfManyThatShareTheirBeginning) {
  const auto tokens = AddedTokens::build(near_misses(), "t.json");
  ASSERT_TRUE(tokens.ok()) << tokens.error().message;
  for (const std::size_t len : {std::size_t{1}, std::size_t{2}, std::size_t{100}, kLongest - 1}) {
    const std::string text = "ab" + std::string(len, '<') + "x<";
    const auto segments = tokens.value().split(text, kEverywhere);
    ASSERT_EQ(segments.size(), 3U);
    EXPECT_EQ(segments[1].id, static_cast<std::int32_t>(len));
    EXPECT_EQ(segments[2].text, "<");
  }
  const std::string longer = std::string(kLongest + 9, '<') + "x";
  const auto segments = tokens.value().split(longer, kEverywhere);
  ASSERT_EQ(segments.size(), 2U);
  EXPECT_EQ(segments[0].text.size(), 10U);
  EXPECT_EQ(segments[1].id, static_cast<std::int32_t>(kLongest - 1));
}

TEST(AddedTokens, AreOfALengthThatBoundsTheWorkAtOnePosition) {
  std::vector<AddedToken> tokens = near_misses();
  tokens.push_back({.id = 9999, .content = std::string(kLongest + 1, 'a')});
  const auto built = AddedTokens::build(tokens, "t.json: added_tokens");
  ASSERT_FALSE(built.ok());
  EXPECT_THAT(built.error().message, HasSubstr("has 257 bytes; expected 1 to 256"));
}

}  // namespace
}  // namespace tidekv
