// What the program takes for a prompt: text, a file, stdin or token ids, and what it refuses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "system/program.h"

namespace tidekv::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;

class CliPrompt : public ProgramTest {
 protected:
  static json examples() { return json::parse(read_file(kNeedle + "/examples.json")); }
};

TEST_F(CliPrompt, RefusesAnEmptyPrompt) {
  EXPECT_THAT(needle("run", {"-p", ""}).err, HasSubstr("the prompt is empty"));
  write_file(path("a"), "\n");
  const Outcome outcome = needle("run", {"-f", path("a")});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("the prompt is empty"));
}

TEST_F(CliPrompt, NamesBothNumbersWhenThePromptExceedsTheContext) {
  const Outcome outcome = needle("run", {"-p", examples().at(0).at("prompt"), "-c", "500"});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("996"));
  EXPECT_THAT(outcome.err, HasSubstr("500"));
}

// Sparse, so it costs no disk; reading it would take minutes and all the memory.
TEST_F(CliPrompt, RefusesAHugeFileBeforeReadingIt) {
  write_file(path("a"), "");
  ASSERT_EQ(::truncate(path("a").c_str(), 10'000'000'000), 0);
  const Outcome ran = needle("run", {"-f", path("a")});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, MatchesRegex("tidekv: error: .*/a: 10,000,000,000 bytes; a context of "
                                    "32,768 tokens holds at most [0-9,]+ bytes\n"));
  const Outcome capped = needle("plan", {"-f", path("a"), "-c", "500"});
  EXPECT_THAT(capped.err, HasSubstr("a context of 500 tokens holds at most 1,048,576 bytes"));
  EXPECT_THAT(needle("tokenize", {"-f", path("a")}).err,
              HasSubstr("10,000,000,000 bytes; a listing takes at most 67,108,864 bytes"));
}

TEST_F(CliPrompt, StopsReadingAnEndlessStdin) {
  const std::string command = kProgram + " run -m " + kNeedle + " -f - </dev/zero 2>" + path("err");
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);
  EXPECT_THAT(read_file(path("err")), HasSubstr("stdin: more than 1,048,576 bytes; a context of "
                                                "32,768 tokens holds at most 1,048,576 bytes"));
}

TEST_F(CliPrompt, ReadsAPromptFromFlagFileAndStdinAlike) {
  const std::string text = "The river kept its slow pace.\n";
  write_file(path("a"), text + "\n");
  write_file(path("in"), text + "\n");
  const Outcome flag = needle("tokenize", {"-p", text, "--ids"});
  EXPECT_EQ(flag.exit_code, 0) << flag.err;
  EXPECT_EQ(needle("tokenize", {"-f", path("a"), "--ids"}).out, flag.out);
  EXPECT_EQ(needle("tokenize", {"-f", "-", "--ids"}).out, flag.out);
  EXPECT_EQ(needle("tokenize", {"-e", "-p", "The river kept its \\x73low pace.\\n", "--ids"}).out,
            flag.out);
}

TEST_F(CliPrompt, TakesAPromptAsTokenIds) {
  const std::string text = examples().at(0).at("prompt");
  std::string ids = needle("tokenize", {"-p", text, "--ids"}).out;  // [1, 2, 3]
  std::erase_if(ids, [](char c) { return c == '[' || c == ']' || c == ','; });
  write_file(path("a"), " \t" + ids + "\r\n");
  write_file(path("in"), ids);
  const std::vector<std::string> flags = {"-n", "8", "--temp", "0", "--budget", "256"};
  const Outcome from_text = needle("run", flags + std::vector<std::string>{"-p", text});
  const Outcome from_ids = needle("run", flags + std::vector<std::string>{"--tokens", path("a")});
  EXPECT_EQ(from_ids.exit_code, 0) << from_ids.err;
  EXPECT_EQ(from_ids.out, from_text.out);
  EXPECT_THAT(from_ids.err, HasSubstr("kept 256 of 996 tokens a layer"));
  EXPECT_EQ(needle("tokenize", {"--tokens", "-"}).out, needle("tokenize", {"-p", text}).out);
  EXPECT_EQ(needle("plan", {"--tokens", path("a")}).out, needle("plan", {"-p", text}).out);
}

TEST_F(CliPrompt, NamesWhatIsWrongWithTokenIds) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"5 4096", "--tokens: id number 2: '4096' is not a whole number from 0 to 4,095"},
      {"-1", "--tokens: id number 1: '-1' is not a whole number from 0 to 4,095"},
      {"1 2, 3", "--tokens: id number 2: '2,' is not a whole number"},
      {"1 99999999999999999999", "--tokens: id number 2: '99999999999999999999' is not"},
      {std::string("1\0", 2), "--tokens: id number 1: '1\\x00' is not a whole number"},
      {" \n\n", "--tokens: the file holds no ids, only white space"},
      {"", "the prompt is empty"},
  };
  for (const auto& [ids, expected] : cases) {
    write_file(path("a"), ids);
    for (const char* command : {"run", "plan", "tokenize"}) {
      const Outcome outcome = needle(command, {"--tokens", path("a")});
      EXPECT_EQ(outcome.exit_code, 2) << ids;
      EXPECT_THAT(outcome.err, HasSubstr(expected));
      EXPECT_THAT(outcome.out, IsEmpty());
    }
  }
  write_file(path("a"), "1 2");
  for (const char* flag : {"-e", "--no-bos", "--parse-special", "--chat"}) {
    EXPECT_THAT(needle("run", {"--tokens", path("a"), flag}).err,
                HasSubstr("--tokens gives the ids as they are; leave out -e"));
  }
  EXPECT_THAT(needle("run", {"--tokens", ""}).err, HasSubstr("--tokens: the path is empty"));
  EXPECT_THAT(needle("run", {"--tokens", path("a"), "--report-file", path("a")}).err,
              HasSubstr("would overwrite"));
}

TEST_F(CliPrompt, ReadsFilesAsBytes) {
  write_file(path("a"), std::string("a\0b\xff\r", 5));
  const Outcome outcome = needle("tokenize", {"-f", path("a"), "--no-bos"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("'a'"));
  EXPECT_THAT(outcome.out, HasSubstr("'b'"));
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 5);
}

TEST_F(CliPrompt, ListsTokensWithControlBytesEscaped) {
  const Outcome outcome = needle("tokenize", {"-p", "Rain\n\x1b[31m"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, MatchesRegex(" +0 -> '[^']+'\n( +[0-9]+ -> '[^'\n\x1b]+'\n)+"));
  EXPECT_THAT(outcome.out, HasSubstr("\\n"));
  const json pieces = json::parse(needle("tokenize", {"-p", "Rain", "--no-bos", "--json"}).out);
  std::string text;
  for (const json& piece : pieces) {
    text += piece.at("piece").get<std::string>();
  }
  EXPECT_EQ(text, "Rain");
}

}  // namespace
}  // namespace tidekv::testing
