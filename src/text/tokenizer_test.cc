#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "base/file.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using Ids = std::vector<std::int32_t>;

const std::string kSource = TIDEKV_SOURCE_DIR;
const EncodeOptions kPlain = {.add_bos = false, .parse_special = false};
const EncodeOptions kSpecial = {.add_bos = false, .parse_special = true};
const EncodeOptions kBosAndSpecial = {.add_bos = true, .parse_special = true};

std::string read(const std::string& path) {
  auto text = read_small_file(path, 1 << 24);
  EXPECT_TRUE(text.ok()) << text.error().message;
  return text.ok() ? text.value() : "";
}

std::unique_ptr<Tokenizer> checked(Result<std::unique_ptr<Tokenizer>> result) {
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? std::move(result).value() : nullptr;
}

std::unique_ptr<Tokenizer> needle() { return checked(load_tokenizer(kSource + "/models/needle")); }

std::string tiny_json() { return read(kSource + "/tests/data/tokenizer_tiny.json"); }

std::unique_ptr<Tokenizer> tiny() { return checked(parse_tokenizer_json(tiny_json(), "tiny")); }

Ids encode(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options) {
  auto ids = tokenizer.encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.error().message;
  return ids.ok() ? ids.value() : Ids{};
}

std::string bytes_of(const Tokenizer& tokenizer, const Ids& ids) {
  std::string bytes;
  for (const std::int32_t id : ids) {
    bytes += tokenizer.token_bytes(id);
  }
  return bytes;
}

// A folder with the tiny tokenizer and the given tokenizer_config.json.
class TokenizerFolder {
 public:
  TokenizerFolder(const std::string& tokenizer, const std::string& config) {
    std::string pattern = testing::TempDir() + "/tidekv_tokenizer_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    std::ofstream(path_ + "/tokenizer.json") << tokenizer;
    std::ofstream(path_ + "/tokenizer_config.json") << config;
  }
  TokenizerFolder(const TokenizerFolder&) = delete;
  TokenizerFolder& operator=(const TokenizerFolder&) = delete;
  ~TokenizerFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The tiny tokenizer without a post-processor.
std::string without_bos() {
  std::string json = tiny_json();
  const std::size_t begin = json.find("{\"type\":\"TemplateProcessing\"");
  const std::size_t end = json.find(",\"decoder\"");
  EXPECT_LT(begin, end);
  return json.replace(begin, end - begin, "null");
}

TEST(Tokenizer, PutsExactlyOneBosFirst) {
  const auto tokenizer = tiny();
  EXPECT_EQ(tokenizer->bos_token_id(), 0);
  EXPECT_EQ(encode(*tokenizer, "", {}), Ids{0});
  EXPECT_EQ(encode(*tokenizer, "a", {}), (Ids{0, 65}));
  EXPECT_EQ(encode(*tokenizer, "<|bos|>a", kBosAndSpecial), (Ids{0, 65}));
  EXPECT_EQ(encode(*tokenizer, "<|bos|><|bos|>a<|bos|>", kBosAndSpecial), (Ids{0, 65, 0}));
}

TEST(Tokenizer, KeepsTheBosThatOnlyTheTextGives) {
  const auto tokenizer = tiny();
  EXPECT_EQ(encode(*tokenizer, "a", kPlain), Ids{65});
  EXPECT_EQ(encode(*tokenizer, "<|bos|>a", kSpecial), (Ids{0, 65}));
}

TEST(Tokenizer, TakesTheBosFromTheConfigIfThePostProcessorHasNone) {
  for (const char* token : {R"("<|bos|>")", R"({"content": "<|bos|>", "lstrip": false})"}) {
    const TokenizerFolder folder(
        without_bos(),
        std::string(R"({"add_bos_token": true, "x": [{}], "bos_token": )") + token + "}");
    EXPECT_EQ(encode(*checked(load_tokenizer(folder.path())), "a", {}), (Ids{0, 65}));
  }
  const TokenizerFolder folder(without_bos(), R"({"bos_token": "<|bos|>"})");
  const auto tokenizer = checked(load_tokenizer(folder.path()));
  EXPECT_EQ(tokenizer->bos_token_id(), 0);
  EXPECT_EQ(encode(*tokenizer, "a", {}), Ids{65});
  EXPECT_EQ(checked(parse_tokenizer_json(without_bos(), "f"))->bos_token_id(), -1);
}

TEST(Tokenizer, TwoSourcesGiveOneBos) {
  const TokenizerFolder folder(tiny_json(), R"({"add_bos_token": true, "bos_token": "<|bos|>"})");
  EXPECT_EQ(encode(*checked(load_tokenizer(folder.path())), "a", {}), (Ids{0, 65}));
}

TEST(Tokenizer, RefusesABadConfigByName) {
  for (const auto& [config, expected] : std::vector<std::pair<std::string, std::string>>{
           {"", "tokenizer_config.json: not valid JSON"},
           {"[]", "holds an array; expected a JSON object"},
           {"3", "holds the number 3; expected a JSON object"},
           {R"({"add_bos_token": true)", "not valid JSON at byte"},
           {R"({"add_bos_token": 1})", "'add_bos_token' is the number 1; expected true or false"},
           {R"({"add_bos_token": [[true]]})", "'add_bos_token' is an array"},
           {R"({"bos_token": 7})", "'bos_token' is the number 7; expected a string"},
           {R"({"bos_token": {"content": null}})",
            "'bos_token.content' is missing; expected a string"},
           {R"({"bos_token": "a", "bos_token": "b"})", "key 'bos_token' appears twice"},
           {R"({"add_bos_token": true, "bos_token": "<s>"})", "bos_token \"<s>\" is no token"},
           {std::string("{}\0garbage", 10), "byte 2 is zero"},
           {R"({"add_bos_token": true})", "bos_token \"\" is no token"}}) {
    const TokenizerFolder folder(without_bos(), config);
    const auto result = load_tokenizer(folder.path());
    ASSERT_FALSE(result.ok()) << config;
    EXPECT_THAT(result.error().message, HasSubstr(expected)) << config;
  }
}

TEST(Tokenizer, AConfigThatCannotBeReadIsNoAbsentOne) {
  const TokenizerFolder folder(tiny_json(), "{}");
  const std::string config = folder.path() + "/tokenizer_config.json";
  std::filesystem::remove(config);
  ASSERT_TRUE(load_tokenizer(folder.path()).ok());
  std::filesystem::create_directory(config);
  EXPECT_THAT(load_tokenizer(folder.path()).error().message,
              HasSubstr(config + ": not a regular file"));
  std::filesystem::remove(config);
  std::filesystem::create_symlink(folder.path() + "/none", config);
  EXPECT_THAT(load_tokenizer(folder.path()).error().message,
              HasSubstr(config + ": cannot open: it is a link that leads nowhere"));
}

TEST(Tokenizer, NamesTheMissingFile) {
  const auto result = load_tokenizer("/nonexistent/folder");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(result.error().message, StartsWith("/nonexistent/folder/tokenizer.json"));
}

TEST(Tokenizer, SpecialTokensInTextStayTextUnlessAsked) {
  const auto tokenizer = needle();
  const std::string text = "<|begin_of_text|>x<|end_of_text|>";
  for (const std::int32_t id : encode(*tokenizer, text, kPlain)) {
    EXPECT_FALSE(tokenizer->is_special(id));
  }
  EXPECT_EQ(bytes_of(*tokenizer, encode(*tokenizer, text, kPlain)), text);
  const Ids parsed = encode(*tokenizer, text, kSpecial);
  ASSERT_EQ(parsed.size(), 3U);
  EXPECT_EQ(parsed.front(), 0);
  EXPECT_EQ(parsed.back(), 1);
}

TEST(Tokenizer, AddedTokensThatAreNotSpecialAlwaysMatch) {
  const auto tokenizer = tiny();
  const Ids ids = encode(*tokenizer, "in the", kPlain);
  EXPECT_EQ(ids, Ids{266});
  EXPECT_EQ(tokenizer->token_bytes(266), "in the");
  EXPECT_FALSE(tokenizer->is_special(266));
}

TEST(Tokenizer, SaysWhatEachIdIs) {
  const auto tokenizer = tiny();
  EXPECT_EQ(tokenizer->vocab_size(), 267);
  EXPECT_EQ(tokenizer->token_text(260), "\xC4\xA0the");
  EXPECT_EQ(tokenizer->token_bytes(260), " the");
  EXPECT_EQ(tokenizer->token_text(0), "<|bos|>");
  EXPECT_EQ(tokenizer->token_bytes(0), "");
  for (const std::int32_t id : {-1, 267, INT32_MAX, INT32_MIN}) {
    EXPECT_EQ(tokenizer->token_text(id), "");
    EXPECT_EQ(tokenizer->token_bytes(id), "");
    EXPECT_FALSE(tokenizer->is_special(id));
  }
}

TEST(Tokenizer, AnyBytesRoundTrip) {
  const auto tokenizer = needle();
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (auto length = random() % 40; length > 0; --length) {
      text += random() % 2 == 0 ? static_cast<char>(random() % 256) : "ab \n\xE2\x82"[random() % 6];
    }
    ASSERT_EQ(bytes_of(*tokenizer, encode(*tokenizer, text, kPlain)), text) << "seed " << kSeed;
  }
}

TEST(Tokenizer, DamagedBytesArePiecesOfTheirOwn) {
  const auto tokenizer = tiny();
  // "t" and "h" merge, but not across a damaged byte.
  EXPECT_EQ(encode(*tokenizer, "t\xFFh th\xED\xA0\x80", kPlain),
            (Ids{84, 188, 72, 221, 257, 170, 255, 223}));
}

TEST(Tokenizer, LongTextAndLongWordsTakeSeconds) {
  const auto tokenizer = needle();
  constexpr std::size_t kLen = std::size_t{1} << 20U;
  constexpr unsigned kSeed = 11;
  std::mt19937 random(kSeed);
  std::string word;
  while (word.size() < kLen) {
    word += "etaoinshrdlu"[random() % 12];
  }
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(bytes_of(*tokenizer, encode(*tokenizer, word, kPlain)), word);
  for (const char c : {'a', ' ', '\n', '!', '7', '\xFF'}) {
    EXPECT_GT(encode(*tokenizer, std::string(kLen, c), kPlain).size(), 0U);
  }
  // Seven megabytes take about two seconds; merging a word in quadratic time would take hours.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(120));
}

TEST(Detokenizer, HoldsIncompleteCharacters) {
  const auto tokenizer = tiny();
  Detokenizer detokenizer(*tokenizer);
  std::vector<std::string> pieces;
  for (const std::int32_t id : encode(*tokenizer, "a\xF0\x9F\x98\x8Az", kPlain)) {
    pieces.push_back(detokenizer.next(id));
  }
  EXPECT_THAT(pieces, ElementsAre("a", "", "", "", "\xF0\x9F\x98\x8A", "z"));
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, ReplacesWhatStaysIncomplete) {
  const auto tokenizer = tiny();
  Detokenizer detokenizer(*tokenizer);
  std::string text;
  for (const std::int32_t id : encode(*tokenizer, "a\xF0\x9F\x98", kPlain)) {
    text += detokenizer.next(id);
  }
  EXPECT_EQ(text, "a");
  EXPECT_EQ(detokenizer.finish(), kReplacementCharacter);
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, SkipsSpecialTokensAndUnknownIds) {
  const auto tokenizer = tiny();
  Detokenizer detokenizer(*tokenizer);
  EXPECT_EQ(detokenizer.next(0), "");
  EXPECT_EQ(detokenizer.next(99999), "");
  EXPECT_EQ(detokenizer.next(-5), "");
  EXPECT_EQ(detokenizer.next(65), "a");
}

// All bytes at once, damaged ones replaced.
std::string decode_at_once(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const Utf8Step step = utf8_step(bytes);
    text += step.kind == Utf8Kind::kValid ? bytes.substr(0, step.length) : kReplacementCharacter;
    bytes.remove_prefix(step.length);
  }
  return text;
}

TEST(Detokenizer, StreamedPiecesAreValidAndJoinToTheWhole) {
  const auto tokenizer = needle();
  constexpr unsigned kSeed = 3;
  std::mt19937 random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    Ids ids;
    for (auto length = random() % 30; length > 0; --length) {
      // Mostly single bytes, many of which start or continue a character.
      ids.push_back(static_cast<std::int32_t>(random() % (random() % 4 == 0 ? 4096 : 260)));
    }
    Detokenizer detokenizer(*tokenizer);
    std::string text;
    for (const std::int32_t id : ids) {
      const std::string piece = detokenizer.next(id);
      ASSERT_EQ(valid_utf8_prefix(piece), piece.size());
      text += piece;
    }
    text += detokenizer.finish();
    ASSERT_EQ(text, decode_at_once(bytes_of(*tokenizer, ids))) << "seed " << kSeed;
  }
}

}  // namespace
}  // namespace tidekv
