// Ids against those of Hugging Face's tokenizers, written by
// tools/reference/make_tokenizer_golden.py.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "text/tokenizer.h"

namespace tidekv {
namespace {

using nlohmann::json;

const std::string kSource = TIDEKV_SOURCE_DIR;

std::string read(const std::string& path) {
  auto text = read_small_file(kSource + "/" + path, 1 << 24);
  EXPECT_TRUE(text.ok()) << text.error().message;
  return text.ok() ? text.value() : "";
}

std::unique_ptr<Tokenizer> tokenizer_from(const std::string& path) {
  auto tokenizer = parse_tokenizer_json(read(path), path);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.error().message;
  return tokenizer.ok() ? std::move(tokenizer).value() : nullptr;
}

std::vector<std::int32_t> encode(const Tokenizer& tokenizer, const std::string& text,
                                 const EncodeOptions& options) {
  auto ids = tokenizer.encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.error().message;
  return ids.ok() ? ids.value() : std::vector<std::int32_t>{};
}

std::string fnv1a(const std::vector<std::int32_t>& ids) {
  std::uint64_t digest = 0xCBF29CE484222325U;
  for (const std::int32_t id : ids) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      digest = (digest ^ (static_cast<std::uint32_t>(id) >> shift & 0xFFU)) * 0x100000001B3U;
    }
  }
  std::string hex;
  for (int nibble = 15; nibble >= 0; --nibble) {
    hex += "0123456789abcdef"[digest >> static_cast<unsigned>(4 * nibble) & 0xFU];
  }
  return hex;
}

TEST(TokenizerGolden, IdsEqualHuggingFaceOnHardStrings) {
  const json golden = json::parse(read("tests/data/tokenizer_golden.json"));
  for (const json& set : golden["tokenizers"]) {
    const auto tokenizer = tokenizer_from(set["file"]);
    ASSERT_NE(tokenizer, nullptr);
    ASSERT_GE(set["cases"].size(), 50U);
    for (const json& item : set["cases"]) {
      const std::string text = item["text"];
      EXPECT_EQ(encode(*tokenizer, text, {.add_bos = true, .parse_special = false}),
                item["ids"].get<std::vector<std::int32_t>>())
          << set["file"] << ": " << item["text"];
      if (item.contains("special_ids")) {
        EXPECT_EQ(encode(*tokenizer, text, {.add_bos = false, .parse_special = true}),
                  item["special_ids"].get<std::vector<std::int32_t>>())
            << set["file"] << ": " << item["text"];
      }
    }
  }
}

TEST(TokenizerGolden, IdsEqualHuggingFaceOnNeedlesPrompts) {
  const auto tokenizer = tokenizer_from("models/needle/tokenizer.json");
  ASSERT_NE(tokenizer, nullptr);
  const json golden = json::parse(read("tests/data/tokenizer_golden.json"))["needle_prompts"];
  const json examples = json::parse(read("models/needle/examples.json"));
  ASSERT_EQ(examples.size(), golden["fnv1a"].size());
  for (std::size_t i = 0; i < examples.size(); ++i) {
    const auto ids = encode(*tokenizer, examples[i]["prompt"], {});
    EXPECT_EQ(ids.size(), golden["num_ids"][i].get<std::size_t>());
    EXPECT_EQ(ids.size(), examples[i]["num_tokens"].get<std::size_t>());
    EXPECT_EQ(fnv1a(ids), golden["fnv1a"][i].get<std::string>()) << "prompt " << i;
    if (i < golden["full"].size()) {
      EXPECT_EQ(ids, golden["full"][i].get<std::vector<std::int32_t>>());
    }
  }
}

}  // namespace
}  // namespace tidekv
