// The program on every kind of model file: what it lists, refuses and runs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gguf/gguf_writer.h"
#include "system/program.h"

namespace tidekv::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kModels = TIDEKV_SOURCE_DIR "/tests/data/models/";

class CliModels : public ProgramTest {
 protected:
  // The digests of a short run.
  json digests_of(const std::string& model) {
    const Outcome outcome = run({"run",
                                 "-m",
                                 model,
                                 "-p",
                                 "a prompt of some words and then some more",
                                 "-n",
                                 "4",
                                 "--temp",
                                 "0",
                                 "--budget",
                                 "12",
                                 "--window",
                                 "4",
                                 "--dtype",
                                 "f32",
                                 "--digest",
                                 "--report",
                                 "json",
                                 "--report-file",
                                 path("a.json")});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(read_file(path("a.json"))).at("digests");
  }
};

TEST_F(CliModels, GiveTheSameDigestsFromGgufAsFromTheFolderItWasMadeOf) {
  for (const std::string model : {"toy-qwen2", "toy-qwen3", "toy-mistral"}) {
    EXPECT_EQ(digests_of(kModels + model + ".gguf"), digests_of(kModels + model)) << model;
  }
}

TEST_F(CliModels, OpensASplitModelByAnyOfItsParts) {
  const json whole = digests_of(kModels + "toy-linear-rope");
  EXPECT_EQ(digests_of(kModels + "toy-linear-rope-00001-of-00003.gguf"), whole);
  EXPECT_EQ(digests_of(kModels + "toy-linear-rope-00003-of-00003.gguf"), whole);
}

TEST_F(CliModels, ListsMetadataAndTensorsOfAGgufFile) {
  const Outcome outcome = run({"inspect", "-m", kModels + "toy-quantised.gguf"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("GGUF 3"), HasSubstr("runs            yes"),
                                 HasSubstr("general.architecture (string) = llama"),
                                 ContainsRegex("tokenizer.ggml.tokens .array of string. = 264: ."),
                                 ContainsRegex("blk.0.attn_q.weight +q[458]_[01] ")));
  const Outcome as_json =
      run({"inspect", "-m", kModels + "toy-quantised.gguf", "--report", "json"});
  const json listing = json::parse(as_json.out);
  EXPECT_EQ(listing.at("format"), "GGUF 3");
  EXPECT_EQ(listing.at("runs"), true);
  EXPECT_GT(listing.at("tensors").size(), 10U);
  EXPECT_GT(listing.at("fields").size(), 10U);
}

TEST_F(CliModels, ListsAModelItCannotRunAndSaysWhy) {
  write_file(path("a"), gguf::GgufWriter()
                            .string("general.architecture", "gemma\x1b[2J")
                            .tensor("weird\nname", {2}, DType::kF32, std::string(8, '\0'))
                            .file());
  const Outcome listed = run({"inspect", "-m", path("a")});
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_THAT(listed.out,
              AllOf(HasSubstr("runs            no: "), HasSubstr("general.architecture"),
                    HasSubstr("'llama', 'qwen2', 'qwen3'"), HasSubstr("weird\\nname"),
                    Not(HasSubstr("\x1b"))));
  EXPECT_EQ(json::parse(run({"inspect", "-m", path("a"), "--report", "json"}).out).at("runs"),
            false);
  const Outcome ran = run({"run", "-m", path("a"), "-p", "a"});
  EXPECT_EQ(ran.exit_code, 3);
  EXPECT_THAT(ran.err, HasSubstr("general.architecture"));
}

TEST_F(CliModels, RefusesATruncatedFileByTheTensorThatIsCut) {
  std::string bytes = read_file(kModels + "toy-llama2.gguf");
  write_file(path("a"), bytes.substr(0, bytes.size() - 1000));
  for (const char* command : {"inspect", "tokenize"}) {
    std::vector<std::string> arguments = {command, "-m", path("a")};
    if (command == std::string("tokenize")) {
      arguments.insert(arguments.end(), {"-p", "a"});
    }
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr(path("a")), HasSubstr("tensor '")));
  }
}

TEST_F(CliModels, ListsWhatStandsBeforeTheDamageAndFails) {
  const std::string bytes = read_file(kModels + "toy-llama2.gguf");
  write_file(path("a"), bytes.substr(0, bytes.size() - 1000));
  const Outcome text = run({"inspect", "-m", path("a")});
  EXPECT_EQ(text.exit_code, 3);
  EXPECT_THAT(text.out, AllOf(HasSubstr("tensors that can be read"), HasSubstr("llama.block_count"),
                              HasSubstr("token_embd.weight"), HasSubstr("runs            no: ")));
  EXPECT_THAT(text.err, AllOf(HasSubstr(path("a")), HasSubstr("expected a complete file")));
  const Outcome listed = run({"inspect", "-m", path("a"), "--report", "json"});
  EXPECT_EQ(listed.exit_code, 3);
  const json listing = json::parse(listed.out);
  EXPECT_EQ(listing.at("runs"), false);
  EXPECT_GT(listing.at("tensors").size(), 5U);

  write_file(path("a"), bytes.substr(0, 10));
  const Outcome nothing = run({"inspect", "-m", path("a")});
  EXPECT_EQ(nothing.exit_code, 3);
  EXPECT_EQ(nothing.out, "");
}

// Puts a number of 4 bytes in the place of the one that `key` has.
std::string with_number(std::string bytes, const std::string& key, std::uint32_t value) {
  const std::size_t at = bytes.find(key);
  EXPECT_NE(at, std::string::npos) << key;
  std::memcpy(bytes.data() + at + key.size() + 4, &value, sizeof value);
  return bytes;
}

TEST_F(CliModels, NameTheFieldThatContradictsTheRestOfTheFile) {
  const struct {
    std::string key;
    std::uint32_t value;
    std::string complaint;
  } cases[] = {
      {"llama.block_count", 7,
       "field 'llama.block_count' of the metadata is 7, but the tensors are of 2 layers"},
      {"llama.block_count", 1, "but field 'llama.block_count' of the metadata is 1"},
      {"tokenizer.ggml.padding_token_id", 5000,
       "field 'tokenizer.ggml.padding_token_id' is the number 5000; expected an integer from 0"},
  };
  for (const auto& [key, value, complaint] : cases) {
    write_file(path("a"), with_number(read_file(kModels + "toy-llama2.gguf"), key, value));
    const Outcome outcome = run({"tokenize", "-m", path("a"), "-p", "a"});
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.err, HasSubstr(complaint));
  }
}

// Each has the length of the name it takes the place of.
TEST_F(CliModels, RefuseATensorThatNoArithmeticUses) {
  const struct {
    std::string name;
    std::string complaint;
  } cases[] = {
      {"blk.1.attn_x.bias", "is not part of the qwen2 architecture"},
      {"blk.9.attn_q.bias", "is of layer 9"},
  };
  for (const auto& [name, complaint] : cases) {
    std::string bytes = read_file(kModels + "toy-qwen2.gguf");
    const std::string old = "blk.1.attn_q.bias";
    const std::size_t at = bytes.find(old);
    ASSERT_NE(at, std::string::npos);
    write_file(path("a"), bytes.replace(at, old.size(), name));
    const Outcome outcome = run({"run", "-m", path("a"), "-p", "a", "-n", "1"});
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.err, AllOf(HasSubstr("tensor '" + name + "'"), HasSubstr(complaint)));
  }
}

TEST_F(CliModels, FindsTheTensorThatHoldsNaN) {
  std::string bytes = read_file(kModels + "toy-biased.gguf");  // all F32
  const float nan = __builtin_nanf("");
  std::memcpy(bytes.data() + bytes.size() - 64, &nan, sizeof nan);
  write_file(path("a"), bytes);
  const std::vector<std::string> arguments = {"run", "-m", path("a"), "-p", "a",
                                              "-n",  "1",  "--temp",  "0"};
  std::vector<std::string> checked = arguments;
  checked.emplace_back("--check-tensors");
  const Outcome outcome = run(checked);
  EXPECT_EQ(outcome.exit_code, 3);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("tensor '"), HasSubstr("NaN")));
  checked[2] = kModels + "toy-biased.gguf";
  EXPECT_EQ(run(checked).exit_code, 0);
}

TEST_F(CliModels, RefusesToGuessAChatTemplate) {
  const Outcome gguf =
      run({"run", "-m", kModels + "toy-llama2.gguf", "--chat", "-p", "hello", "-n", "1"});
  EXPECT_EQ(gguf.exit_code, 3);
  EXPECT_THAT(gguf.err, AllOf(HasSubstr("'tokenizer.chat_template' is missing"),
                              HasSubstr("this model has none")));
  const Outcome folder = needle("run", {"--chat", "-p", "hello", "-n", "1"});
  EXPECT_EQ(folder.exit_code, 3);
  EXPECT_THAT(folder.err, HasSubstr("chat_template"));
}

TEST_F(CliModels, NamesChatFlagsThatContradict) {
  EXPECT_THAT(needle("run", {"-p", "a", "--system", "b"}).err, HasSubstr("add --chat"));
  for (const char* flag : {"--no-bos", "--parse-special"}) {
    const Outcome outcome = needle("tokenize", {"-p", "a", "--chat", flag});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.err, HasSubstr("leave out --no-bos and --parse-special"));
  }
}

}  // namespace
}  // namespace tidekv::testing
