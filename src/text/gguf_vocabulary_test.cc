#include "text/gguf_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "text/byte_alphabet.h"
#include "text/space_mark.h"

namespace tidekv {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

using Ids = std::vector<std::int32_t>;

constexpr std::int32_t kNormal = 1;
constexpr std::int32_t kUnknown = 2;
constexpr std::int32_t kControl = 3;
constexpr std::int32_t kUserDefined = 4;
constexpr std::int32_t kByte = 6;

std::unique_ptr<Tokenizer> checked(Result<std::unique_ptr<Tokenizer>> result) {
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? std::move(result).value() : nullptr;
}

Ids encode(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options) {
  auto ids = tokenizer.encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.error().message;
  return ids.ok() ? ids.value() : Ids{};
}

void add(GgufVocabulary& vocabulary, std::string_view token, std::int32_t type, float score = 0) {
  vocabulary.tokens.add(token);
  vocabulary.token_types.push_back(type);
  vocabulary.scores.push_back(score);
}

// 256 bytes, then "th", "the", "<s>" (258, special), "<think>" (259).
GgufVocabulary byte_level() {
  GgufVocabulary vocabulary;
  vocabulary.model = "gpt2";
  vocabulary.pre = "gpt-2";
  for (int byte = 0; byte < 256; ++byte) {
    add(vocabulary, byte_spelling(static_cast<std::uint8_t>(byte)), kNormal);
  }
  add(vocabulary, "th", kNormal);
  add(vocabulary, "the", kNormal);
  add(vocabulary, "<s>", kControl);
  add(vocabulary, "<think>", kUserDefined);
  vocabulary.merges.add("t h");
  vocabulary.merges.add("th e");
  vocabulary.bos_id = 258;
  return vocabulary;
}

// "<unk>", "<s>", "</s>", 256 bytes from 3 on, then U+2581 (259), "a", "b", "ab", U+2581 "ab"
// (263).
GgufVocabulary sentencepiece() {
  GgufVocabulary vocabulary;
  vocabulary.model = "llama";
  add(vocabulary, "<unk>", kUnknown);
  add(vocabulary, "<s>", kControl);
  add(vocabulary, "</s>", kControl);
  for (int byte = 0; byte < 256; ++byte) {
    add(vocabulary, token_of_byte(static_cast<std::uint8_t>(byte)), kByte);
  }
  add(vocabulary, kSpaceMark, kNormal, -4);
  add(vocabulary, "a", kNormal, -3);
  add(vocabulary, "b", kNormal, -3);
  add(vocabulary, "ab", kNormal, -1);
  add(vocabulary, std::string(kSpaceMark) + "ab", kNormal, -2);
  vocabulary.bos_id = 1;
  return vocabulary;
}

TEST(GgufVocabulary, MergesBytesAndKnowsItsSpecialTokens) {
  const auto tokenizer = checked(make_gguf_tokenizer(byte_level(), "f.gguf"));
  EXPECT_EQ(encode(*tokenizer, "the<s>", {}), (Ids{257, '<', 's', '>'}));
  EXPECT_EQ(encode(*tokenizer, "the<s>", {.parse_special = true}), (Ids{257, 258}));
  EXPECT_EQ(encode(*tokenizer, "<think>the", {}), (Ids{259, 257}));
  EXPECT_EQ(tokenizer->find_special("<think>"), 259);
  EXPECT_EQ(tokenizer->find_special("<s>"), 258);
  EXPECT_EQ(tokenizer->find_special("the"), -1);
  EXPECT_EQ(tokenizer->vocab_size(), 260);
}

TEST(GgufVocabulary, PutsABosFirstWhereFileOrKindWantsOne) {
  GgufVocabulary vocabulary = byte_level();
  EXPECT_EQ(encode(*checked(make_gguf_tokenizer(vocabulary, "f")), "the", {}), Ids{257});
  vocabulary.add_bos = true;
  EXPECT_EQ(encode(*checked(make_gguf_tokenizer(vocabulary, "f")), "the", {}), (Ids{258, 257}));
  vocabulary.add_bos.reset();
  vocabulary.pre = "llama-bpe";
  EXPECT_EQ(encode(*checked(make_gguf_tokenizer(vocabulary, "f")), "the", {}), (Ids{258, 257}));
  vocabulary = sentencepiece();
  EXPECT_EQ(encode(*checked(make_gguf_tokenizer(vocabulary, "f")), "ab", {}), (Ids{1, 263}));
  vocabulary.add_bos = false;
  EXPECT_EQ(encode(*checked(make_gguf_tokenizer(vocabulary, "f")), "ab", {}), Ids{263});
}

TEST(GgufVocabulary, SentencePieceFallsBackToBytesAndPutsASpaceInFront) {
  GgufVocabulary vocabulary = sentencepiece();
  const EncodeOptions plain = {.add_bos = false, .parse_special = true};
  const auto tokenizer = checked(make_gguf_tokenizer(vocabulary, "f"));
  EXPECT_EQ(encode(*tokenizer, "ab\n", plain), (Ids{263, 3 + '\n'}));
  EXPECT_EQ(encode(*tokenizer, " ab", plain), (Ids{259, 263}));
  EXPECT_EQ(encode(*tokenizer, "ab</s>ab", plain), (Ids{263, 2, 263}));
  vocabulary.add_space_prefix = false;
  EXPECT_EQ(encode(*checked(make_gguf_tokenizer(vocabulary, "f")), "ab ab", plain),
            (Ids{262, 263}));
}

TEST(GgufVocabulary, KnowsThePreTokenisersOfItsFamilies) {
  GgufVocabulary vocabulary = byte_level();
  const EncodeOptions plain = {.add_bos = false};
  for (const char* name : {"gpt-2", "smollm", "llama-bpe", "llama3", "llama-v3", "qwen2",
                           "deepseek-r1-qwen", "tekken"}) {
    vocabulary.pre = name;
    const auto tokenizer = checked(make_gguf_tokenizer(vocabulary, "f"));
    EXPECT_EQ(encode(*tokenizer, "the 12 the!\n", plain), (Ids{257, 32, 49, 50, 32, 257, 33, 10}))
        << name;
  }
}

struct Broken {
  std::function<void(GgufVocabulary&)> change;
  std::string expected;
};

void expect_refused(const std::vector<Broken>& cases, GgufVocabulary (*valid)()) {
  for (const Broken& broken : cases) {
    GgufVocabulary vocabulary = valid();
    broken.change(vocabulary);
    const auto result = make_gguf_tokenizer(vocabulary, "f.gguf");
    ASSERT_FALSE(result.ok()) << broken.expected;
    EXPECT_THAT(result.error().message, StartsWith("f.gguf: tokenizer.ggml.")) << broken.expected;
    EXPECT_THAT(result.error().message, HasSubstr(broken.expected));
  }
}

TEST(GgufVocabulary, RefusesBadTablesByName) {
  expect_refused(
      {
          {[](auto& v) { v.model = "bert"; }, "model is \"bert\"; expected gpt2, llama or t5"},
          {[](auto& v) { v.model.clear(); }, "model is missing; expected gpt2"},
          {[](auto& v) { v.pre = "new-pre"; }, "pre is \"new-pre\"; expected one of gpt-2, smollm"},
          {[](auto& v) { v.pre = "default"; }, "pre is \"default\"; expected one of"},
          {[](auto& v) { v.pre.clear(); }, "pre is missing; expected one of"},
          {[](auto& v) { v.tokens = {}; }, "tokens holds 0 tokens"},
          {[](auto& v) { v.token_types.pop_back(); },
           "token_type holds 259 types; expected one for each of the 260 tokens"},
          {[](auto& v) { v.token_types[7] = 0; }, "token_type[7] is 0; expected 1 to 6"},
          {[](auto& v) { v.token_types[7] = -1; }, "token_type[7] is -1; expected 1 to 6"},
          {[](auto& v) { v.bos_id = 260; }, "bos_token_id is 260; expected the id of one of"},
          {[](auto& v) { v.eos_id = -1; }, "eos_token_id is -1"},
          {[](auto& v) { v.unk_id = INT32_MAX; }, "unknown_token_id is 2147483647"},
          {[](auto& v) { v.add_eos = true; }, "add_eos_token is true; expected false"},
          {[](auto& v) {
             v.add_bos = true;
             v.bos_id.reset();
           },
           "bos_token_id is missing"},
          {[](auto& v) { v.merges = {}; }, "merges is missing"},
          {[](auto& v) { v.merges.add("th"); }, "merges[2] is \"th\"; expected two tokens"},
          {[](auto& v) { v.merges.add("t h e"); }, "merges[2] is \"t h e\"; expected two tokens"},
          {[](auto& v) { v.merges.add(" h"); }, "merges[2]: one part is empty"},
          {[](auto& v) { v.merges.add("h e"); }, "merges[2]: \"he\" is not in tokenizer.ggml.tok"},
          {[](auto& v) { v.merges.add("t h"); }, "merges[2]: repeats merge 0"},
          {[](auto& v) { add(v, "the", kNormal); }, "tokens: \"the\" is there twice"},
          {[](auto& v) { add(v, "<s>", kControl); }, "tokens: \"<s>\" is there twice"},
          {[](auto& v) { add(v, "", kControl); }, "tokens: \"\" has 0 bytes; expected 1 to"},
          {[](auto& v) { v.token_types['a'] = kControl; }, "tokens: no token \"a\" for byte 97"},
      },
      byte_level);
  expect_refused(
      {
          {[](auto& v) { v.scores.pop_back(); },
           "scores holds 263 numbers; expected one for each of the 264 tokens"},
          {[](auto& v) { v.scores[5] = std::numeric_limits<float>::quiet_NaN(); },
           "tokens[5] has a score that is not finite"},
          {[](auto& v) { add(v, "\xFF", kNormal); }, "tokens[264] is \"\\xff\"; expected"},
          {[](auto& v) { add(v, "", kNormal); }, "tokens[264] is \"\"; expected at least one"},
          {[](auto& v) { add(v, "<0x0a>", kByte); }, "tokens[264] is a byte spelled \"<0x0a>\""},
          {[](auto& v) { add(v, "ab", kNormal); }, "tokens: \"ab\" is there twice"},
          {[](auto& v) { v.bos_id.reset(); }, "bos_token_id is missing"},
          {[](auto& v) { add(v, std::string(513, 'a'), kNormal); },
           "tokens[264] has 513 bytes; expected at most 512"},
          {[](auto& v) {
             v.model = "t5";
             add(v, std::string(513, 'a'), kNormal);
           },
           "tokens[264] has 513 bytes; expected at most 512"},
          // A trie of one unit, then a text too long for any rule of normalisation.
          {[](auto& v) {
             v.precompiled_charsmap = std::string("\4\0\0\0\0\0\0\0", 8);
             v.precompiled_charsmap += std::string(129, 'a') + '\0';
           },
           "precompiled_charsmap maps to a text of 129 bytes; expected at most 128"},
      },
      sentencepiece);
}

TEST(GgufVocabulary, NeedsAnUnknownTokenOrAllBytes) {
  GgufVocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.add_bos = false;
  add(vocabulary, "a", kNormal);
  EXPECT_THAT(make_gguf_tokenizer(vocabulary, "f").error().message,
              HasSubstr("neither a token for each byte nor an unknown one"));
  vocabulary.unk_id = 0;
  EXPECT_EQ(encode(*checked(make_gguf_tokenizer(vocabulary, "f")), "xyza", {}), (Ids{0, 0}));
  add(vocabulary, "<0x41>", kByte);
  EXPECT_THAT(make_gguf_tokenizer(vocabulary, "f").error().message,
              HasSubstr("no token \"<0x00>\"; expected one for each of the 256 bytes"));
}

TEST(GgufVocabulary, ATextThatSurelyHasMoreTokensIsRefusedEarly) {
  const auto tokenizer = checked(make_gguf_tokenizer(byte_level(), "f"));
  // The longest token is "<think>", 7 bytes.
  EXPECT_TRUE(tokenizer->encode(std::string(70, 'a'), {.max_tokens = 10}).ok());
  const auto refused = tokenizer->encode(std::string(71, 'a'), {.max_tokens = 10});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(refused.error().message,
              HasSubstr("a text of 71 bytes is more than 10 tokens: at least 11"));
}

// "th" + "e" merge across the edges of a protected range, special tokens do not touch one.
TEST(GgufVocabulary, ProtectedTextForgesNoSpecialToken) {
  GgufVocabulary vocabulary = byte_level();
  add(vocabulary, "<s><s>", kControl);  // 260
  const auto tokenizer = checked(make_gguf_tokenizer(vocabulary, "f"));
  const auto ids_of = [&](std::string_view text, std::vector<TextRange> ranges) {
    return encode(*tokenizer, text,
                  {.add_bos = false, .parse_special = true, .protected_ranges = ranges});
  };
  EXPECT_EQ(ids_of("<s>the<s>", {}), (Ids{258, 257, 258}));
  EXPECT_EQ(ids_of("<s>the<s>", {{3, 6}}), (Ids{258, 257, 258}));
  EXPECT_EQ(ids_of("<s>the<s>", {{4, 5}}), (Ids{258, 257, 258}));
  EXPECT_EQ(ids_of("<s>the<s>", {{3, 9}}), (Ids{258, 257, '<', 's', '>'}));
  EXPECT_EQ(ids_of("<s>the<s>", {{0, 1}}), (Ids{'<', 's', '>', 257, 258}));
  EXPECT_EQ(ids_of("<s>the<s>", {{2, 3}, {8, 9}}), (Ids{'<', 's', '>', 257, '<', 's', '>'}));
  // Text before a special token cannot make a longer one of it and so hide it.
  EXPECT_EQ(ids_of("<s><s>", {}), Ids{260});
  EXPECT_EQ(ids_of("<s><s>", {{0, 3}}), (Ids{'<', 's', '>', 258}));
  EXPECT_EQ(ids_of("<s><s>", {{3, 6}}), (Ids{258, '<', 's', '>'}));
  // Other added tokens are found everywhere.
  EXPECT_EQ(ids_of("<think>", {{0, 7}}), Ids{259});
}

TEST(GgufVocabulary, RefusesProtectedRangesThatAreNotInOrderAndApart) {
  const auto tokenizer = checked(make_gguf_tokenizer(byte_level(), "f"));
  for (const std::vector<TextRange>& ranges :
       {std::vector<TextRange>{{2, 2}}, {{3, 2}}, {{0, 9}}, {{2, 4}, {3, 5}}, {{4, 6}, {0, 2}}}) {
    const auto result = tokenizer->encode("12345678", {.protected_ranges = ranges});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(result.error().message, HasSubstr("expected ranges that are not empty"));
  }
}

}  // namespace
}  // namespace tidekv
