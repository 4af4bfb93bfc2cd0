// Hostile tokenizer.json files: an error that names file, field and what would be right.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string tiny_json() {
  auto text =
      read_small_file(std::string(TIDEKV_SOURCE_DIR) + "/tests/data/tokenizer_tiny.json", 4096);
  EXPECT_TRUE(text.ok()) << text.error().message;
  return text.ok() ? text.value() : "";
}

// The tiny file with one text, which must be there once, replaced.
std::string changed(const std::string& from, const std::string& to) {
  std::string json = tiny_json();
  const std::size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(json.find(from, at + 1), std::string::npos) << from << " is there twice";
  return json.replace(at, from.size(), to);
}

std::string repeated(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) {
    out += text;
  }
  return out;
}

void expect_error(const std::string& json, const std::vector<std::string>& parts) {
  const auto result = parse_tokenizer_json(json, "dir/tokenizer.json");
  ASSERT_FALSE(result.ok()) << "expected an error with " << parts[0];
  EXPECT_THAT(result.error().message, StartsWith("dir/tokenizer.json"));
  for (const std::string& part : parts) {
    EXPECT_THAT(result.error().message, HasSubstr(part));
  }
  EXPECT_LT(result.error().message.size(), 600U);
  EXPECT_EQ(valid_utf8_prefix(result.error().message), result.error().message.size());
}

struct BadFile {
  std::string from;
  std::string to;
  std::vector<std::string> parts;  // of the message
};

TEST(TokenizerJson, ReadsTheFileThatTheBadOnesAreMadeFrom) {
  EXPECT_TRUE(parse_tokenizer_json(tiny_json(), "f").ok());
}

TEST(TokenizerJson, RefusesItCutAtEveryByte) {
  const std::string json = tiny_json();
  ASSERT_TRUE(json.ends_with("}\n"));
  for (std::size_t length = 0; length + 1 < json.size(); ++length) {
    const auto result = parse_tokenizer_json(json.substr(0, length), "f");
    ASSERT_FALSE(result.ok()) << length;
    ASSERT_THAT(result.error().message, HasSubstr("not valid JSON at byte")) << length;
  }
}

TEST(TokenizerJson, SurvivesEveryByteChanged) {
  const std::string json = tiny_json();
  int num_errors = 0;
  for (std::size_t i = 0; i < json.size(); ++i) {
    for (const char byte : {'"', '{', '\xFF'}) {
      std::string damaged = json;
      damaged[i] = byte;
      const auto result = parse_tokenizer_json(damaged, "f");
      num_errors += result.ok() ? 0 : 1;
      if (!result.ok()) {  // whoever shows it, as JSON perhaps, needs valid text
        const std::string& message = result.error().message;
        ASSERT_EQ(valid_utf8_prefix(message), message.size()) << i;
      }
      if (result.ok()) {
        EXPECT_TRUE(result.value()->encode("in the 123\xC3\xA9", {}).ok());
      }
    }
  }
  EXPECT_GT(num_errors, 6000);
}

TEST(TokenizerJson, RefusesWhatIsNotATokenizer) {
  expect_error("", {"not valid JSON at byte"});
  expect_error("version https://git-lfs.github.com/spec/v1\n", {"not valid JSON at byte 1"});
  expect_error("<html></html>", {"not valid JSON"});
  expect_error("null", {"holds null; expected a JSON object"});
  expect_error("[]", {"holds an array; expected a JSON object"});
  expect_error("{}", {"field 'model' is missing"});
  expect_error(tiny_json() + "{}", {"not valid JSON at byte"});
  const std::string size = std::to_string(tiny_json().size());
  expect_error(tiny_json() + std::string("\0", 1), {"byte " + size + " is zero"});
  expect_error(tiny_json() + std::string("\0garbage", 8), {"byte " + size + " is zero"});
  expect_error(std::string(100000, '['), {"holds an array; expected a JSON object"});
  expect_error("{\"normalizer\":" + std::string(100000, '['),
               {"nested deeper than 32 levels, after key 'normalizer'"});
  expect_error("{\"decoder\":[" + repeated("0,", 300000),
               {"key 'decoder' holds more than 262144 values"});
  expect_error("{\"" + std::string(100000, 'k') + "\":1}", {"is not supported"});
}

TEST(TokenizerJson, RefusesABadModel) {
  const std::vector<BadFile> files = {
      {R"("type":"BPE")",
       R"("type":"WordPiece")",
       {"field 'model.type' is the string 'WordPiece'", "expected \"BPE\""}},
      {R"("type":"BPE")", R"("type":7)", {"'model.type' is the number 7; expected a string"}},
      {R"("type":"BPE",)", "", {"'model.type' is missing"}},
      {R"("type":"BPE")", R"("type":"BPE","type":"BPE")", {"model: key 'type' appears twice"}},
      {R"("type":"BPE")",
       R"("type":"BPE","dropout":0.1)",
       {"'model.dropout' is the number 0.1; expected null, or this off"}},
      {R"("type":"BPE")",
       R"("type":"BPE","byte_fallback":true)",
       {"type' is the string 'Split'; expected Metaspace"}},
      {R"("type":"BPE")",
       R"("type":"BPE","end_of_word_suffix":"</w>")",
       {"'model.end_of_word_suffix' is the string '</w>'"}},
      {R"("type":"BPE")",
       R"("type":"BPE","continuing_subword_prefix":"##")",
       {"'model.continuing_subword_prefix' is the string '##'"}},
      {R"("type":"BPE")",
       R"("type":"BPE","ignore_merges":1)",
       {"'model.ignore_merges' is the number 1", "true or false"}},
      {R"("type":"BPE")", R"("type":"BPE","cache":1)", {"model: field 'cache' is not supported"}},
      {R"("model":{)", R"("model":[{)", {"model is an array; expected an object"}},
      {R"("model":{)", R"("model":7,"padding":{)", {"model is the number 7; expected an object"}},
      {R"("vocab":{)", R"("vocab":[{)", {"model.vocab is an array; expected an object"}},
      {R"("vocab":{)", R"("vocab":{},"vocab":{)", {"key 'vocab' appears twice"}},
      {R"("vocab":{)", R"("fuse_unk":{)", {"'model.vocab' is missing"}},
      {R"("merges":[)", R"("fuse_unk":[)", {"'model.merges' is missing"}},
      {R"("merges":[)", R"("merges":[],"merges":[)", {"key 'merges' appears twice"}},
      {R"("merges":["t h")",
       R"("merges":{"t":"h")",
       {"model.merges is an object; expected an array"}},
  };
  for (const BadFile& file : files) {
    expect_error(changed(file.from, file.to), file.parts);
  }
}

TEST(TokenizerJson, RefusesABadVocabulary) {
  const std::vector<BadFile> files = {
      {R"("th":257)",
       R"("th":-1)",
       {"model.vocab: the id of \"th\" is the number -1", "expected a whole number"}},
      {R"("th":257)", R"("th":257.0)", {"the id of \"th\" is the number 257.0"}},
      {R"("th":257)", R"("th":"257")", {"the id of \"th\" is the string '257'"}},
      {R"("th":257)", R"("th":[257])", {"the id of \"th\" is an array"}},
      {R"("th":257)", R"("th":{"a":1})", {"the id of \"th\" is an object"}},
      {R"("th":257)", R"("th":null)", {"the id of \"th\" is null"}},
      {R"("th":257)", R"("th":4294967296)", {"the id of \"th\" is the number 4294967296"}},
      {R"("th":257)", R"("th":18446744073709551616)", {"the id of \"th\" is the number 1.84"}},
      {R"("th":257)", R"("th":1e400)", {"model.vocab: not valid JSON at byte"}},
      {R"("th":257)", R"("th":2147483647)", {"\"th\" has id 2147483647", "expected ids below"}},
      {R"("th":257)", R"("th":256)", {"\"\xC5\x83\" and \"th\" both have id 256", "every id once"}},
      {R"("th":257)", R"("the":257)", {"\"the\" is there twice", "every token once"}},
      {R"("!":1,)", "", {"no token \"!\" for byte 33", "each of the 256 bytes"}},
      {R"("th":257)", "\"\xFF\":257", {"model.vocab: not valid JSON at byte"}},
      {R"("th":257)", R"("\ud800":257)", {"model.vocab: not valid JSON at byte"}},
  };
  for (const BadFile& file : files) {
    expect_error(changed(file.from, file.to), file.parts);
  }
}

TEST(TokenizerJson, RefusesBadMerges) {
  const std::vector<BadFile> files = {
      {R"(["t h",)", R"(["th",)", {"model.merges[0] is \"th\"", "two tokens with one space"}},
      {R"(["t h",)", R"(["t h e",)", {"model.merges[0] is \"t h e\""}},
      {R"(["t h",)", R"([" h",)", {"model.merges[0]: one part is empty"}},
      {R"(["t h",)", R"(["t ",)", {"model.merges[0]: one part is empty"}},
      {R"(["t h",)", R"(["t zz",)", {"model.merges[0]: \"zz\" is not in model.vocab"}},
      {R"(["t h",)", R"(["x y",)", {"model.merges[0]: \"xy\" is not in model.vocab"}},
      {R"("12 3")", R"("t h")", {"model.merges[6]: repeats merge 0", "every pair once"}},
      {R"(["t h",)", R"([7,)", {"model.merges[0] is the number 7; expected"}},
      {R"(["t h",)", R"([{},)", {"model.merges[0] is an object"}},
      {R"(["t h",)", R"([["t"],)", {"model.merges[0]: a pair of 1; expected two strings"}},
      {R"(["t h",)", R"([["t","h","e"],)", {"model.merges[0]: a third part \"e\""}},
      {R"(["t h",)", R"([["t","h",7],)", {"model.merges[0] holds the number 7; expected two"}},
      {R"(["t h",)", R"([["t",7],)", {"model.merges[0] holds the number 7; expected two strings"}},
      {R"(["t h",)", R"([["t",["h"]],)", {"model.merges[0] holds an array; expected two strings"}},
      {R"("12 3")", R"(["12","3","4"])", {"model.merges[6]: a third part \"4\""}},
      {R"(["t h",)", R"([["","h"],)", {"one part is empty"}},
  };
  for (const BadFile& file : files) {
    expect_error(changed(file.from, file.to), file.parts);
  }
}

TEST(TokenizerJson, RefusesBadAddedTokens) {
  const std::string bos = R"({"id":0,"content":"<|bos|>","single_word":false)";
  const std::string other = R"({"id":266,"content":"in the","single_word":false,"lstrip":false)";
  const std::vector<BadFile> files = {
      {R"("added_tokens":[)",
       R"("added_tokens":[7,)",
       {"added_tokens[0] is the number 7; expected an object"}},
      {R"("added_tokens":[)",
       R"("added_tokens":[[],)",
       {"added_tokens[0] is an array; expected an object"}},
      {R"("added_tokens":[)",
       R"("added_tokens":{"a":[)",
       {"added_tokens is an object; expected an array"}},
      {R"("added_tokens":[)",
       R"("added_tokens":[],"added_tokens":[)",
       {"key 'added_tokens' appears twice"}},
      {bos, R"({"content":"<|bos|>","single_word":false)", {"'added_tokens[0].id' is missing"}},
      {bos,
       R"({"id":-3,"content":"<|bos|>","single_word":false)",
       {"'added_tokens[0].id' is the number -3"}},
      {bos,
       R"({"id":1e3,"content":"<|bos|>","single_word":false)",
       {"'added_tokens[0].id' is the number 1000.0"}},
      {bos,
       R"({"id":18446744073709551615,"content":"<|bos|>","single_word":false)",
       {"expected an integer from 0 to 2147483647"}},
      {bos,
       R"({"id":2000000000,"content":"<|bos|>","single_word":false)",
       {"added_tokens: \"<|bos|>\" has id 2000000000"}},
      {bos,
       R"({"id":0,"content":7,"single_word":false)",
       {"'added_tokens[0].content' is the number 7; expected a string"}},
      {bos,
       R"({"id":0,"content":"<|bos|>","single_word":true)",
       {"'added_tokens[0].single_word' is true; expected false"}},
      {bos,
       R"({"id":0,"id":0,"content":"<|bos|>","single_word":false)",
       {"added_tokens[0]: key 'id' appears twice"}},
      {bos,
       R"({"id":0,"color":1,"content":"<|bos|>","single_word":false)",
       {"field 'added_tokens[0].color' is not supported"}},
      {bos,
       R"({"id":5,"content":"<|bos|>","single_word":false)",
       {"\"<|bos|>\" has id 5 but model.vocab gives it 0"}},
      {other,
       R"({"id":266,"content":"","single_word":false,"lstrip":false)",
       {"added_tokens: \"\" has 0 bytes"}},
      {other,
       R"({"id":300,"content":"<|bos|>","single_word":false,"lstrip":false)",
       {"has id 300 but model.vocab gives it 0"}},
      {other,
       R"({"id":65,"content":"in the","single_word":false,"lstrip":false)",
       {"\"in the\" has id 65, which is \"a\""}},
      {other,
       R"({"id":266,"content":"in the","single_word":false,"lstrip":"no")",
       {"'added_tokens[1].lstrip' is the string 'no'"}},
      {other,
       R"({"id":267,"content":"in the","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":false},)" +
           other,
       {"\"in the\" is there twice"}},
  };
  for (const BadFile& file : files) {
    expect_error(changed(file.from, file.to), file.parts);
  }
}

TEST(TokenizerJson, RefusesOtherSectionsByName) {
  const std::string split = R"("behavior":"Isolated","invert":false)";
  const std::string byte_level =
      R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false,"trim_offsets":true})";
  const std::string decoder =
      R"({"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true})";
  const std::string text = R"({"Sequence":{"id":"A","type_id":0}}],"pair")";
  const std::string special = R"({"SpecialToken":{"id":"<|bos|>","type_id":0}})";
  const std::vector<BadFile> files = {
      {R"("version":"1.0")",
       R"("version":"2.0")",
       {"'version' is the string '2.0'", "expected \"1.0\""}},
      {R"("version":"1.0")", R"("shape":1)", {"field 'shape' is not supported"}},
      {R"("normalizer":null)",
       R"("normalizer":{"type":"NFKC"})",
       {"'normalizer.type' is the string 'NFKC'; expected NFC, or null"}},
      {R"("normalizer":null)",
       R"("normalizer":"NFC")",
       {"'normalizer' is the string 'NFC'; expected an object"}},
      {R"("pre_tokenizer":{"type")",
       R"("pre_tokenizer":{"kind")",
       {"'pre_tokenizer.type' is missing"}},
      {"," + byte_level, "", {"pre_tokenizer does not end in ByteLevel"}},
      {byte_level,
       R"({"type":"Metaspace"})",
       {"'pre_tokenizer.pretokenizers[1].type' is the string 'Metaspace'"}},
      {byte_level, byte_level + "," + byte_level, {"pretokenizers[2]: expected at most 16 steps"}},
      {byte_level,
       repeated(R"({"type":"Digits","individual_digits":true},)", 20) + byte_level,
       {"at most 16 steps"}},
      {byte_level, R"({"type":"ByteLevel"})", {"pretokenizers[1].add_prefix_space' is missing"}},
      {byte_level,
       R"({"type":"ByteLevel","add_prefix_space":0})",
       {"add_prefix_space' is the number 0; expected true or false"}},
      {byte_level,
       R"("ByteLevel")",
       {"pretokenizers[1]' is the string 'ByteLevel'; expected an object"}},
      {R"({"type":"Split")",
       R"({"type":"Sequence","pretokenizers":[]},{"type":"Split")",
       {"is the string 'Sequence'; expected Split, Digits or ByteLevel"}},
      {split,
       R"("behavior":"MergedWithNext","invert":false)",
       {"pretokenizers[0].behavior' is the string 'MergedWithNext'"}},
      {split, R"("behavior":"Isolated","invert":null)", {"pretokenizers[0].invert' is missing"}},
      {R"({"Regex":"(?i:)",
       R"({"Glob":"(?i:)",
       {"pretokenizers[0].pattern.Glob' is not supported"}},
      {R"({"Regex":"(?i:)",
       R"({"String":"a","Regex":"(?i:)",
       {"pattern has 2 fields; expected one"}},
      {R"({"Regex":"(?i:)",
       R"({"Regex":"\\w|(?i:)",
       {"pretokenizers[0].pattern: \"\\w\" at byte 0"}},
      {R"({"Regex":"(?i:)",
       R"({"Regex":"x*|(?i:)",
       {"pretokenizers[0].pattern: the pattern can match the empty text"}},
      {R"("decoder":)" + decoder,
       R"("decoder":null)",
       {"'decoder' is missing; expected an object"}},
      {R"("decoder":)" + decoder,
       R"("decoder":{"type":"Metaspace"})",
       {"'decoder.type' is the string 'Metaspace'"}},
      {R"("decoder":)" + decoder,
       R"("decoder":{"type":"Sequence","decoders":[{"type":"Fuse"}]})",
       {"'decoder.decoders[0].type' is the string 'Fuse'"}},
      {R"("decoder":)" + decoder + ",", "", {"'decoder' is missing"}},
      {R"("type":"TemplateProcessing")",
       R"("type":"BertProcessing")",
       {"'post_processor.type' is the string 'BertProcessing'"}},
      {text, R"({"Sequence":{"id":"B","type_id":0}}],"pair")", {"post_processor.single[1]: \"B\""}},
      {text,
       R"({"Sequence":{"id":"A","type_id":0}},)" + special + R"(],"pair")",
       {"single[2]: \"<|bos|>\"", "nothing behind"}},
      {text,
       special + R"(],"pair")",
       {"post_processor.single: expected at most one special token"}},
      {special, special + "," + special, {"at most one special token"}},
      {special, "7", {"'post_processor.single[0]' is the number 7; expected an object"}},
      {special, R"({"SpecialToken":{"id":"<s>","type_id":0}})", {"special_tokens lacks \"<s>\""}},
      {R"("ids":[0])", R"("ids":[])", {"ids' is an array", "exactly one token id"}},
      {R"("ids":[0])", R"("ids":[0,0])", {"exactly one token id"}},
      {R"("ids":[0])", R"("ids":[-1])", {"ids' holds the number -1"}},
      {R"("ids":[0])", R"("ids":[4294967296])", {"ids' holds the number 4294967296"}},
      {R"("ids":[0])", R"("ids":[65])", {"\"<|bos|>\" has id 65, which is \"a\""}},
      {R"("ids":[0])", R"("ids":[9999])", {"\"<|bos|>\" has id 9999"}},
  };
  for (const BadFile& file : files) {
    expect_error(changed(file.from, file.to), file.parts);
  }
}

TEST(TokenizerJson, AShortFileCannotAskForALongTable) {
  expect_error(changed(R"("th":257)", R"("th":16777215)"), {"\"th\" has id 16777215"});
}

TEST(TokenizerJson, OrderOfFieldsAndFormOfMergesDoNotMatter) {
  const std::string json = tiny_json();
  const std::size_t vocab = json.find(R"("vocab":)");
  const std::size_t merges = json.find(R"(,"merges":)");
  const std::string swapped = json.substr(0, vocab) +
                              R"("merges":[["t","h"],["th","e"],["i","n"],["Ġ","the"],)"
                              R"(["Ġ","in"],["1","2"],["12","3"],["à","©"],["Ċ","Ċ"]],)" +
                              json.substr(vocab, merges - vocab) + "}}";
  const auto first = parse_tokenizer_json(json, "f");
  const auto second = parse_tokenizer_json(swapped, "f");
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(second.ok()) << second.error().message;
  const std::string text = "then in the 1234\n\né";
  EXPECT_EQ(first.value()->encode(text, {}).value(), second.value()->encode(text, {}).value());
}

}  // namespace
}  // namespace tidekv
