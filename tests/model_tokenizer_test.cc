// Real models' tokenizers, from every kind of file that has one, against the ids that
// tools/reference/make_model_tokenizer_goldens.py wrote. The files: tools/get_model all.
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "engine/gguf_tokenizer.h"
#include "io/tensor_file.h"
#include "text/gguf_vocabulary.h"
#include "text/sentencepiece_model.h"
#include "text/tokenizer.h"

namespace tidekv {
namespace {

using nlohmann::json;

using Ids = std::vector<std::int32_t>;
using TokenizerPointer = std::unique_ptr<Tokenizer>;

const std::string kSource = TIDEKV_SOURCE_DIR;
const std::string kModels = kSource + "/models/";
const std::string kSmolLm2 = kModels + "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

template <typename T>
T checked(Result<T> result) {
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? std::move(result).value() : T{};
}

std::string read(const std::string& path) { return checked(read_small_file(path, 1 << 24)); }

Ids encode(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options) {
  return checked(tokenizer.encode(text, options));
}

// Mistral's SentencePiece model as a GGUF file would hold it.
GgufVocabulary mistral_vocabulary() {
  const std::string path = kModels + "mistral-tokenizer/tokenizer.model";
  const SentencePieceSpec spec = checked(read_sentencepiece_model(read(path), path));
  GgufVocabulary vocabulary;
  vocabulary.model = "llama";
  vocabulary.tokens = spec.base.tokens;
  vocabulary.scores = spec.scores;
  for (const PieceType type : spec.types) {
    vocabulary.token_types.push_back(static_cast<std::int32_t>(type));
  }
  vocabulary.bos_id = 1;
  vocabulary.unk_id = 0;
  return vocabulary;
}

TokenizerPointer needle() { return checked(load_tokenizer(kModels + "needle")); }
TokenizerPointer smollm2() {
  const auto file = TensorFile::open(kSmolLm2);
  EXPECT_TRUE(file.ok()) << file.error().message;
  return file.ok() ? checked(read_gguf_tokenizer(*file.value().metadata())) : nullptr;
}
TokenizerPointer mistral() { return checked(load_tokenizer(kModels + "mistral-tokenizer")); }
TokenizerPointer mistral_gguf() {
  return checked(make_gguf_tokenizer(mistral_vocabulary(), "mistral.gguf"));
}
TokenizerPointer llama3() { return checked(load_tokenizer(kModels + "llama3-tokenizer")); }

std::string text_of(const json& item) {
  if (item.contains("text")) {
    return item["text"];
  }
  const std::string hex = item["hex"];
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

void expect_golden(const Tokenizer* tokenizer, const std::string& name) {
  ASSERT_NE(tokenizer, nullptr);
  const json golden = json::parse(read(kSource + "/tests/data/tokenizers/" + name));
  ASSERT_GE(golden["cases"].size(), 80U);
  const auto bos = golden["bos"].get<std::int32_t>();
  std::size_t num_special = 0;
  std::size_t num_stray = 0;  // of bytes that are no text
  for (const json& item : golden["cases"]) {
    const std::string text = text_of(item);
    Ids ids = item["ids"];
    EXPECT_EQ(encode(*tokenizer, text, {.add_bos = false}), ids) << name << ": " << item;
    if (bos >= 0) {
      ids.insert(ids.begin(), bos);
    }
    EXPECT_EQ(encode(*tokenizer, text, {}), ids) << name << ": " << item;
    const Ids special = item.value("special_ids", item["ids"].get<Ids>());
    EXPECT_EQ(encode(*tokenizer, text, {.add_bos = false, .parse_special = true}), special)
        << name << ": " << item;
    num_special += item.contains("special_ids") ? 1 : 0;
    num_stray += item.contains("hex") ? 1 : 0;
  }
  EXPECT_GE(num_special, 2U);
  EXPECT_GE(num_stray, 128U);  // each alone
}

TEST(ModelTokenizer, IdsOfNeedleEqualTheReference) { expect_golden(needle().get(), "needle.json"); }

TEST(ModelTokenizer, IdsOfSmolLm2FromGgufEqualTheReference) {
  expect_golden(smollm2().get(), "smollm2.json");
}

TEST(ModelTokenizer, IdsOfMistralFromTokenizerModelEqualTheReference) {
  expect_golden(mistral().get(), "mistral.json");
}

TEST(ModelTokenizer, IdsOfMistralFromGgufEqualTheReference) {
  expect_golden(mistral_gguf().get(), "mistral.json");
}

TEST(ModelTokenizer, IdsOfLlama3FromRanksEqualTheReference) {
  expect_golden(llama3().get(), "llama3.json");
}

// SmolLM2's vocabulary lacks 21 bytes.
TEST(ModelTokenizer, BytesRoundTrip) {
  constexpr unsigned kSeed = 17;
  for (const auto& make : {llama3, mistral}) {
    const auto tokenizer = make();
    ASSERT_NE(tokenizer, nullptr);
    std::mt19937 random(kSeed);
    for (int round = 0; round < 1000; ++round) {
      std::string text;
      for (auto length = random() % 40; length > 0; --length) {
        text +=
            random() % 2 == 0 ? static_cast<char>(random() % 256) : "ab \n\xE2\x82"[random() % 6];
      }
      std::string bytes;
      for (const std::int32_t id : encode(*tokenizer, text, {.add_bos = false})) {
        bytes += tokenizer->token_bytes(id);
      }
      // SentencePiece puts a space in front.
      const bool prefixed = bytes.size() == text.size() + 1 && bytes.front() == ' ';
      ASSERT_EQ(prefixed ? bytes.substr(1) : bytes, text) << "seed " << kSeed;
    }
  }
}

TEST(ModelTokenizer, FindsSpecialTokensByTheirText) {
  EXPECT_EQ(smollm2()->find_special("<|im_end|>"), 2);
  EXPECT_EQ(llama3()->find_special("<|eot_id|>"), 128009);
  EXPECT_EQ(mistral()->find_special("</s>"), 2);
  EXPECT_EQ(mistral_gguf()->find_special("</s>"), 2);
  EXPECT_EQ(mistral()->find_special("the"), -1);
}

// A megabyte of each: prose, code, one word without end, one character.
std::vector<std::string> megabytes() {
  constexpr std::size_t kLen = 1'000'000;
  std::mt19937 random(23);
  const auto repeat = [](const std::string& part) {
    std::string text;
    while (text.size() < kLen) {
      text += part;
    }
    return text;
  };
  std::string word;
  while (word.size() < kLen) {
    word += "etaoinshrdlucmfwypvbgkjqxz"[random() % 26];
  }
  return {repeat(read(kSource + "/docs/style.md")),
          repeat(read(kSource + "/tests/CMakeLists.txt")),
          word,
          repeat("a"),
          repeat("thequickbrownfoxjumps"),
          repeat("漢字仮名"),
          repeat(" "),
          repeat("e\xCC\x81")};
}

// Seconds of this process, whatever else the machine does, to encode every part.
double seconds_of(const Tokenizer& tokenizer, const std::vector<std::string_view>& parts) {
  const std::clock_t start = std::clock();
  for (const std::string_view part : parts) {
    encode(tokenizer, part, {});
  }
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::vector<std::string_view> cut(std::string_view text, std::size_t part_len) {
  std::vector<std::string_view> parts;
  for (; !text.empty(); text.remove_prefix(parts.back().size())) {
    parts.push_back(text.substr(0, part_len));
  }
  return parts;
}

// Linear work takes as long for the whole as for its 32 parts, but for a logarithm and the caches:
// less than twice in practice. Quadratic work would take 32 times as long. A second measurement
// decides where something disturbed the first.
TEST(ModelTokenizer, AMegabyteOfAnythingTakesAboutAsLongAsItsParts) {
  constexpr std::size_t kNumParts = 32;
  constexpr double kMostTimesAsLong = 8.0;
  for (const auto& make : {needle, smollm2, mistral, llama3}) {
    const auto tokenizer = make();
    ASSERT_NE(tokenizer, nullptr);
    for (const std::string& text : megabytes()) {
      const auto is_linear = [&] {
        const double whole = seconds_of(*tokenizer, {text});
        const double parts = seconds_of(*tokenizer, cut(text, text.size() / kNumParts));
        std::cout << text.substr(0, 12) << "...: " << whole << " s, its parts " << parts << " s\n";
        return whole < kMostTimesAsLong * parts;
      };
      EXPECT_TRUE(is_linear() || is_linear());
    }
  }
}

}  // namespace
}  // namespace tidekv
