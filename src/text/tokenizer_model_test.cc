// Small tokenizer.model files, and tokenizer.json files of SentencePiece's kind, against what
// tools/reference/make_model_tokenizer_goldens.py wrote; files that are broken; folders.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "text/compose.h"
#include "text/tokenizer.h"

namespace tidekv {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

using Ids = std::vector<std::int32_t>;

const std::string kSource = TIDEKV_SOURCE_DIR;
const std::string kCorpus = kSource + "/fuzz/corpus/tokenizer_model/";
const EncodeOptions kPlain = {.add_bos = false};
const EncodeOptions kSpecial = {.add_bos = false, .parse_special = true};

std::string read(const std::string& path) {
  auto text = read_small_file(path, 1 << 24);
  EXPECT_TRUE(text.ok()) << text.error().message;
  return text.ok() ? text.value() : "";
}

json golden(const std::string& name) {
  return json::parse(read(kSource + "/tests/data/tokenizers/" + name));
}

std::unique_ptr<Tokenizer> checked(Result<std::unique_ptr<Tokenizer>> result) {
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? std::move(result).value() : nullptr;
}

std::unique_ptr<Tokenizer> corpus_model(const std::string& name) {
  return checked(parse_tokenizer_model(read(kCorpus + name), name));
}

Ids encode(const Tokenizer& tokenizer, std::string_view text, const EncodeOptions& options) {
  auto ids = tokenizer.encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.error().message;
  return ids.ok() ? ids.value() : Ids{};
}

void expect_cases(const Tokenizer* tokenizer, const json& cases, const std::string& name) {
  ASSERT_NE(tokenizer, nullptr) << name;
  ASSERT_GE(cases.size(), 15U);
  for (const json& item : cases) {
    const std::string text = item["text"];
    const Ids ids = item["ids"];
    EXPECT_EQ(encode(*tokenizer, text, kPlain), ids) << name << ": " << item;
    if (item.contains("special_ids")) {
      EXPECT_EQ(encode(*tokenizer, text, kSpecial), item["special_ids"].get<Ids>())
          << name << ": " << item;
    }
  }
}

TEST(TokenizerModel, IdsOfSmallSentencePieceModelsEqualTheLibrarys) {
  const json files = golden("sentencepiece_tiny.json");
  for (const json& file : files["files"]) {
    const std::string path = file["file"];
    const auto tokenizer = checked(parse_tokenizer_model(read(kSource + "/" + path), path));
    expect_cases(tokenizer.get(), file["cases"], path);
  }
}

TEST(TokenizerModel, IdsOfLlamaStyleJsonEqualHuggingFace) {
  const json all = golden("llama_style.json");
  ASSERT_EQ(all["variants"].size(), 5U);
  for (const json& variant : all["variants"]) {
    json whole = all["tokenizer"];
    whole["normalizer"] = variant["normalizer"];
    whole["pre_tokenizer"] = variant["pre_tokenizer"];
    const std::string name = variant["name"];
    const auto tokenizer = checked(parse_tokenizer_json(whole.dump(), name));
    expect_cases(tokenizer.get(), variant["cases"], name);
  }
}

TEST(TokenizerModel, IdsOfComposedTextEqualHuggingFace) {
  json whole = json::parse(read(kSource + "/tests/data/tokenizer_tiny.json"));
  whole["normalizer"] = {{"type", "NFC"}};
  const auto tokenizer = checked(parse_tokenizer_json(whole.dump(), "composed"));
  expect_cases(tokenizer.get(), golden("composed.json")["cases"], "composed");
}

TEST(TokenizerModel, RefusesBrokenFilesByName) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"no_unknown", "no piece is the unknown one"},
      {"two_unknown", "pieces[3] is unknown, as pieces[0] is"},
      {"twice", "is there twice; expected every token once"},
      {"empty_piece", "pieces[3] is \"\"; expected at least one character"},
      {"damaged_piece", "pieces[3] is \"a\\xff\"; expected at least one character of valid UTF-8"},
      {"nan_score", "pieces[3] has a score that is not finite"},
      {"infinite_score", "pieces[3] has a score that is not finite"},
      {"unknown_type", "pieces[3]: type is 9; expected a number from 1 to 6"},
      {"byte_misspelled", "pieces[3] is a byte spelled \"<0xG0>\""},
      {"bytes_missing", "no token \"<0x00>\"; expected one for each of the 256 bytes"},
      {"long_piece", "pieces[3] has 4000 bytes; expected at most 512"},
      {"word_model", "trainer_spec.model_type is 3; expected 1 (unigram) or 2 (BPE)"},
      {"whitespace_suffix", "treat_whitespace_as_suffix is true; expected false"},
      {"no_escape", "escape_whitespaces is false; expected true"},
      {"no_trainer", "trainer_spec is missing"},
      {"no_normalizer", "normalizer_spec is missing"},
      {"charsmap_short", "precompiled_charsmap has 3 bytes"},
      {"charsmap_size", "precompiled_charsmap has 13 bytes, of which 4294967295 should be a trie"},
      {"score_as_text", "pieces[3]: score is bytes; expected a number of 4 bytes"},
      {"piece_as_number", "pieces is a whole number; expected bytes"},
      {"length_wraps", "expected at most the 0 that are left"},
      {"endless_number", "a number that does not end"},
      {"group", "a field of wire type 3"},
      {"ranks_hole", "has id 2147483647; expected ids below"},
      {"ranks_twice", "\"aa\" is there twice"},
      {"ranks_same", "both have id 258"},
      {"ranks_no_rank", "line 261 is \"eno=\"; expected a token in base64, a space and its rank"},
      {"ranks_not_base64", "line 261 is \"e!o= 260\""},
      {"ranks_empty_token", "line 261 is \" 260\""},
      {"ranks_negative", "line 261 is \"eno= -1\""},
      {"ranks_no_bytes", "no token \"\xC4\x80\" for byte 0"},
      {"empty", "begins with \"\"; expected a SentencePiece model, or tiktoken's ranks"},
      {"text", "begins with \"not a tokenizer\""},
  };
  for (const auto& [name, expected] : files) {
    const auto result = parse_tokenizer_model(read(kCorpus + name), "f/tokenizer.model");
    ASSERT_FALSE(result.ok()) << name;
    EXPECT_THAT(result.error().message, StartsWith("f/tokenizer.model: ")) << name;
    EXPECT_THAT(result.error().message, HasSubstr(expected)) << name;
  }
}

TEST(TokenizerModel, ACutFileIsAnErrorOrWholeLinesOfRanks) {
  for (const char* name : {"valid_bpe", "valid_bpe_bytes", "valid_unigram", "valid_charsmap",
                           "valid_user_defined", "valid_ranks"}) {
    const std::string whole = read(kCorpus + name);
    ASSERT_LE(whole.size(), 4096U);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto result = parse_tokenizer_model(whole.substr(0, size), "tokenizer.model");
      if (result.ok()) {
        // Nothing in a file of ranks says how many there should be.
        EXPECT_EQ(name, std::string("valid_ranks"));
        EXPECT_GE(result.value()->vocab_size(), 256 + 256);
        continue;
      }
      EXPECT_THAT(result.error().message, HasSubstr("tokenizer.model")) << name << " at " << size;
    }
  }
}

TEST(TokenizerModel, AMapThatLeadsOutOfItsTableIsNotFollowed) {
  for (const char* name : {"charsmap_leads_out", "charsmap_value_leads_out"}) {
    EXPECT_GT(encode(*corpus_model(name), "a \xFF\n ab", kPlain).size(), 0U) << name;
  }
}

TEST(TokenizerModel, BytesWithoutPieceKeepTheirValues) {
  const auto tokenizer = corpus_model("valid_bpe_bytes");
  std::string bytes;
  for (const std::int32_t id : encode(*tokenizer, "a\xFF\xC3 \xE6\xBC\xA2", kPlain)) {
    bytes += tokenizer->token_bytes(id);
  }
  EXPECT_EQ(bytes, " a\xFF\xC3 \xE6\xBC\xA2");
}

TEST(TokenizerModel, PutsOneBosFirstUnlessTheFolderSaysNo) {
  const auto tokenizer = corpus_model("valid_bpe");
  EXPECT_EQ(tokenizer->bos_token_id(), 1);
  EXPECT_EQ(encode(*tokenizer, "ab", {}), (Ids{1, 11}));
  EXPECT_EQ(encode(*tokenizer, "<s>ab", {.parse_special = true}), (Ids{1, 11}));
  EXPECT_EQ(encode(*tokenizer, "ab<s>ab", {.parse_special = true}), (Ids{1, 11, 1, 11}));
}

// A folder with one of the corpus's models.
class ModelFolder {
 public:
  ModelFolder(const std::string& model, const std::string& config) {
    std::string pattern = testing::TempDir() + "/tidekv_tokenizer_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    std::ofstream(path_ + "/tokenizer.model") << read(kCorpus + model);
    std::ofstream(path_ + "/tokenizer_config.json") << config;
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;
  ~ModelFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(TokenizerModel, TheConfigDecidesAboutBosSpacesAndTokens) {
  const auto ids_of = [](const std::string& config, std::string_view text) {
    const ModelFolder folder("valid_bpe", config);
    const auto tokenizer = checked(load_tokenizer(folder.path()));
    return tokenizer == nullptr ? Ids{} : encode(*tokenizer, text, {.parse_special = true});
  };
  EXPECT_EQ(ids_of("{}", "ab</s>ab"), (Ids{1, 11, 2, 11}));
  EXPECT_EQ(ids_of(R"({"add_bos_token": false})", "ab"), Ids{11});
  EXPECT_EQ(ids_of(R"({"bos_token": "</s>"})", "ab"), (Ids{2, 11}));
  EXPECT_EQ(ids_of(R"({"legacy": false})", "ab</s>ab"), (Ids{1, 11, 2, 8}));
  EXPECT_EQ(ids_of(R"({"legacy": false})", " ab"), (Ids{1, 11}));
  EXPECT_EQ(ids_of(R"({"add_prefix_space": false})", "ab"), (Ids{1, 8}));
  EXPECT_EQ(
      ids_of(R"({"added_tokens_decoder": {"13": {"content": "[X]", "special": true}}})", "ab[X]"),
      (Ids{1, 11, 13}));
}

TEST(TokenizerModel, RefusesABadConfigByName) {
  for (const auto& [config, expected] : std::vector<std::pair<std::string, std::string>>{
           {R"({"added_tokens_decoder": []})", "'added_tokens_decoder' is an array"},
           {R"({"added_tokens_decoder": {"x": {"content": "a"}}})", "key 'x' is no id"},
           {R"({"added_tokens_decoder": {"13": {}}})", "content' is missing; expected a string"},
           {R"({"added_tokens_decoder": {"13": {"content": "a", "single_word": true}}})",
            "single_word' is true; expected false"},
           {R"({"added_tokens_decoder": {"4": {"content": "zz"}}})",
            "pieces: \"zz\" has id 4, which is \"a\""},
           {R"({"legacy": 1})", "'legacy' is the number 1; expected true or false"}}) {
    const ModelFolder folder("valid_bpe", config);
    const auto result = load_tokenizer(folder.path());
    ASSERT_FALSE(result.ok()) << config;
    EXPECT_THAT(result.error().message, HasSubstr(expected)) << config;
  }
}

TEST(TokenizerModel, RanksTakeTheConfigsTokensInPlaceOfLlama3s) {
  const auto plain = corpus_model("valid_ranks");
  EXPECT_EQ(plain->find_special("<|begin_of_text|>"), 260);
  EXPECT_EQ(plain->find_special("<|reserved_special_token_245|>"), 260 + 255);
  EXPECT_EQ(encode(*plain, " aab", {}), (Ids{260, 32, 258}));
  const ModelFolder folder(
      "valid_ranks", R"({"added_tokens_decoder": {"260": {"content": "<x>", "special": true}}})");
  const auto tokenizer = checked(load_tokenizer(folder.path()));
  EXPECT_EQ(tokenizer->vocab_size(), 261);
  EXPECT_EQ(encode(*tokenizer, "aab<x>", {.parse_special = true}), (Ids{258, 260}));
}

json llama_style() {
  const json all = golden("llama_style.json");
  json whole = all["tokenizer"];
  whole["normalizer"] = all["variants"][0]["normalizer"];
  whole["pre_tokenizer"] = nullptr;
  return whole;
}

TEST(TokenizerModel, RefusesALlamaStyleJsonThatItWouldReadWrongly) {
  const auto expect_refused = [](const json& whole, const std::string& expected) {
    const auto result = parse_tokenizer_json(whole.dump(), "tokenizer.json");
    ASSERT_FALSE(result.ok()) << expected;
    EXPECT_THAT(result.error().message, StartsWith("tokenizer.json: "));
    EXPECT_THAT(result.error().message, HasSubstr(expected));
  };
  json whole = llama_style();
  whole["normalizer"] = nullptr;
  expect_refused(whole, "'normalizer' is missing; expected Replace of each space by U+2581");
  whole = llama_style();
  whole["normalizer"]["normalizers"][0]["prepend"] = "_";
  expect_refused(whole, "prepend' is the string '_'; expected \"\xE2\x96\x81\"");
  whole = llama_style();
  whole["normalizer"] = {{"type", "NFKC"}};
  expect_refused(whole, "'NFKC'; expected Prepend or Replace");
  whole = llama_style();
  whole["pre_tokenizer"] = {{"type", "ByteLevel"}};
  expect_refused(whole, "'ByteLevel'; expected Metaspace");
  whole = llama_style();
  whole["pre_tokenizer"] = {{"type", "Metaspace"},
                            {"replacement", "\xE2\x96\x81"},
                            {"prepend_scheme", "always"},
                            {"split", true}};
  expect_refused(whole, "split' is true; expected false");
  whole["pre_tokenizer"]["split"] = false;
  expect_refused(whole, "one of Prepend and Metaspace");
  whole = llama_style();
  whole["added_tokens"][1]["normalized"] = true;
  expect_refused(whole, "\"<s>\" is searched for in normalised text");
  whole = llama_style();
  whole["model"]["vocab"].erase("<0x0A>");
  expect_refused(whole, "no token \"<0x0A>\"; expected one for each of the 256 bytes");
  whole = llama_style();
  whole["model"]["type"] = "Unigram";
  expect_refused(whole, "'model.type' is the string 'Unigram'; expected \"BPE\"");
}

TEST(Compose, OrdersMarksAndKeepsDamagedBytes) {
  EXPECT_TRUE(is_surely_composed("caf\xC3\xA9\n"));
  EXPECT_FALSE(is_surely_composed("cafe\xCC\x81"));
  EXPECT_EQ(compose("cafe\xCC\x81 A\xCC\x8A"), "caf\xC3\xA9 \xC3\x85");
  EXPECT_EQ(compose("q\xCC\x87\xCC\xA3"), "q\xCC\xA3\xCC\x87");  // the mark below comes first
  EXPECT_EQ(compose("e\xFF\xCC\x81"), "e\xFF\xCC\x81");
  EXPECT_EQ(compose("\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8"), "\xEA\xB0\x81");  // Hangul
  EXPECT_EQ(compose(std::string_view("\0e\xCC\x81", 4)), std::string_view("\0\xC3\xA9", 3));
}

}  // namespace
}  // namespace tidekv
