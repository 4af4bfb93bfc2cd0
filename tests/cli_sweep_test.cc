// tidekv sweep: what it reads, what it reports, and what it says of files that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "system/program.h"

namespace tidekv::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

// What stderr holds beside lines of progress, which slow builds and machines show.
std::string without_progress(const std::string& err) {
  std::istringstream lines(err);
  std::string rest;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("prompt ", 0) != 0) {
      rest += line + "\n";
    }
  }
  return rest;
}

class CliSweep : public ProgramTest {
 protected:
  // On the prompts in the file "a".
  Outcome sweep(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-f", path("a"), "-t", "1"});
    return needle("sweep", arguments);
  }
  Outcome sweep_lines(const std::vector<json>& lines, const std::vector<std::string>& arguments) {
    std::string text;
    for (const json& line : lines) {
      text += line.dump() + "\n";
    }
    write_file(path("a"), text);
    return sweep(arguments);
  }
  json sweep_json(const std::vector<json>& lines, std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-o", "json"});
    const Outcome outcome = sweep_lines(lines, arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_THAT(without_progress(outcome.err), IsEmpty());
    return json::parse(outcome.out);
  }
  // A file that is wrong: nothing runs.
  std::string refusal(const std::string& text, int exit_code = 3) {
    write_file(path("a"), text);
    const Outcome outcome = sweep({"--budget", "64", "-n", "4", "-c", "1000"});
    EXPECT_EQ(outcome.exit_code, exit_code);
    EXPECT_THAT(outcome.out, IsEmpty());
    return outcome.err;
  }
};

// A prompt of needle's with its answer, of its README's kind.
json example(std::size_t index) {
  const json line = json::parse(read_file(kNeedle + "/examples.json")).at(index);
  return {{"prompt", line.at("prompt")}, {"answer", line.at("answer")}, {"id", index}};
}

json short_prompt(int number) {
  return {{"prompt", "The secret number is " + std::to_string(number)}};
}

TEST_F(CliSweep, GivesWhatRunGives) {
  const json line = example(0);
  const json swept =
      sweep_json({line}, {"--method", "tidekv-snap,snapkv,block-snap,adakv,full,keydiff",
                          "--budget", "128,256", "-n", "8", "--digest"});
  EXPECT_EQ(swept.at("complete"), true);
  const json& targets = swept.at("prompts").at(0).at("targets");
  ASSERT_EQ(targets.size(), 11U);
  write_file(path("in"), line.at("prompt").get<std::string>());
  for (const json& target : targets) {
    const std::string budget = std::to_string(target.at("budget").get<int>());
    const Outcome run =
        needle("run", {"-f", "-", "-t", "1", "-n", "8", "--temp", "0", "--digest", "--method",
                       target.at("method").get<std::string>(), "--budget",
                       budget == "0" ? "64" : budget, "--report-file", path("a.json")});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const json report = json::parse(read_file(path("a.json")));
    EXPECT_EQ(target.at("tokens"), report.at("tokens")) << target.at("method") << budget;
    EXPECT_EQ(target.at("text"), report.at("text"));
    EXPECT_EQ(target.at("layers"), report.at("layers"));
    EXPECT_EQ(target.at("digests"), report.at("digests"));
    EXPECT_EQ(target.at("alone_peak_bytes"), report.at("peak_bytes"));
  }
}

TEST_F(CliSweep, CountsRightAnswersWithAnInterval) {
  json wrong = example(1);
  wrong["answer"] = {"no number", wrong["answer"]};  // all must occur
  const json swept =
      sweep_json({example(0), wrong, short_prompt(1)}, {"--method", "full", "-n", "12"});
  const json& target = swept.at("targets").at(0);
  EXPECT_EQ(target.at("right"), 1);
  EXPECT_EQ(target.at("scored"), 2);  // the third line has no answer
  EXPECT_NEAR(target.at("share_low"), 0.0945, 0.0005);
  EXPECT_NEAR(target.at("share_high"), 0.9055, 0.0005);
  EXPECT_EQ(swept.at("prompts").at(0).at("targets").at(0).at("right"), true);
  EXPECT_EQ(swept.at("prompts").at(1).at("targets").at(0).at("right"), false);
  EXPECT_FALSE(swept.at("prompts").at(2).at("targets").at(0).contains("right"));
}

TEST_F(CliSweep, FindsAnswersInAnyCaseOfLetters) {
  const json text = sweep_json({short_prompt(12)}, {"--method", "full", "-n", "6"})
                        .at("prompts")
                        .at(0)
                        .at("targets")
                        .at(0)
                        .at("text");
  std::string upper = text.get<std::string>();
  for (char& c : upper) {
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  ASSERT_FALSE(upper.empty());
  json line = short_prompt(12);
  line["answer"] = upper;
  EXPECT_EQ(sweep_json({line}, {"--method", "full", "-n", "6"}).at("targets").at(0).at("right"), 1);
}

TEST_F(CliSweep, ReadsTextsIdsAndBegunAnswersAlike) {
  write_file(path("in"), "The secret number is 12");
  const Outcome ids = needle("tokenize", {"-f", "-", "--ids"});
  ASSERT_EQ(ids.exit_code, 0) << ids.err;
  const json tokens = json::parse(ids.out);
  const json swept = sweep_json({short_prompt(12),
                                 {{"tokens", tokens}},
                                 {{"prompt", "The secret number is"}, {"prefix", " 12"}}},
                                {"--method", "full", "-n", "6"});
  const json& prompts = swept.at("prompts");
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_EQ(prompts.at(i).at("prompt_len"), prompts.at(0).at("prompt_len"));
    EXPECT_EQ(prompts.at(i).at("targets").at(0).at("tokens"),
              prompts.at(0).at("targets").at(0).at("tokens"));
  }
}

TEST_F(CliSweep, PrintsATableOfMethodsAndBudgets) {
  const Outcome outcome =
      sweep_lines({example(0)}, {"--method", "full,tidekv-snap", "--budget", "64,256", "-n", "12"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 7U) << outcome.out;
  EXPECT_THAT(lines[0], StartsWith("| method      | budget | right | share | 95 % interval |"));
  EXPECT_THAT(lines[1], StartsWith("| ----------- | -----: |"));
  EXPECT_THAT(lines[2], StartsWith("| full        |    all |   1/1 | 100 % |    21 - 100 % |"));
  EXPECT_THAT(lines[4], HasSubstr("256 |"));
  EXPECT_THAT(lines[6], StartsWith("1 prompt, prefilled once for all; peak of the sweep"));
}

TEST_F(CliSweep, LeavesOutSharesWhereNoLineHasAnAnswer) {
  const Outcome outcome = sweep_lines({short_prompt(1)}, {"--method", "full", "-n", "2"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, Not(HasSubstr("right")));
}

TEST_F(CliSweep, WritesALineForEachPromptAndOneForAll) {
  const Outcome outcome = sweep_lines({short_prompt(1), short_prompt(2)},
                                      {"--method", "full", "-n", "2", "-o", "jsonl"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(json::parse(lines[0]).at("id"), "1");
  EXPECT_EQ(json::parse(lines[1]).at("id"), "2");
  EXPECT_EQ(json::parse(lines[2]).at("complete"), true);
  EXPECT_EQ(json::parse(lines[2]).at("num_done"), 2);
}

TEST_F(CliSweep, WritesARowOfCsvForEachTargetAndEverythingToAReportFile) {
  const Outcome outcome =
      sweep_lines({short_prompt(1)}, {"--method", "full,recent", "--budget", "8,9", "-n", "2", "-o",
                                      "csv", "--report-file", path("b.json")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_THAT(lines[0], StartsWith("method,budget,num_prompts,num_done,right,scored,"));
  EXPECT_THAT(lines[1], StartsWith("full,0,1,1,0,0,"));
  EXPECT_THAT(lines[3], StartsWith("recent,9,1,1,0,0,"));
  const json report = json::parse(read_file(path("b.json")));
  EXPECT_EQ(report.at("prompts").at(0).at("targets").size(), 3U);
}

TEST_F(CliSweep, NamesTheLineThatIsWrongAndRunsNothing) {
  const std::string good = short_prompt(1).dump() + "\n";
  EXPECT_THAT(refusal(good + "\n" + R"({"prompt": "The)"),
              HasSubstr("a: line 3: not valid JSON at byte 15: the text ends early"));
  EXPECT_THAT(refusal(good + R"(["prompt"])"),
              HasSubstr("line 2: holds an array; expected a JSON"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "prompt": "b"})"),
              HasSubstr("line 1: key 'prompt' appears"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "tokens": [5]})"),
              HasSubstr("line 1: several prompts; expected one of"));
  EXPECT_THAT(refusal(R"({"answer": "a"})"), HasSubstr("line 1: no prompt; expected one of"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "anwser": "b"})"),
              HasSubstr("field 'anwser' is not supported; expected only prompt, tokens"));
  EXPECT_THAT(refusal(R"({"prompt": ""})"), HasSubstr("expected a string that is not empty"));
  EXPECT_THAT(refusal(R"({"prompt": 5})"), HasSubstr("field 'prompt' is the number 5"));
  EXPECT_THAT(refusal(R"({"tokens": []})"), HasSubstr("field 'tokens' is empty"));
  EXPECT_THAT(refusal(R"({"tokens": [5, -1]})"),
              HasSubstr("holds the number -1; expected an array"));
  EXPECT_THAT(refusal(R"({"tokens": [1e3]})"), HasSubstr("holds the number 1000.0"));
  EXPECT_THAT(refusal(R"({"messages": [{"role": "user"}]})"),
              HasSubstr("field 'messages[0].content' is missing"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "answer": ["b", ""]})"),
              HasSubstr("field 'answer' holds"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "answer": []})"), HasSubstr("field 'answer' is an array"));
  EXPECT_THAT(refusal(R"({"prompt": "a", "id": 1.5})"), HasSubstr("a string or a whole number"));
  EXPECT_THAT(refusal("{\"prompt\": \"\xFF\"}"), HasSubstr("line 1: not valid JSON"));
  EXPECT_THAT(refusal(std::string("{\"prompt\": \"a\0\"}", 16)), HasSubstr("byte 13 is zero"));
  EXPECT_THAT(refusal(R"({"prompt": )" + std::string(500, '[')), HasSubstr("nested deeper than"));
  EXPECT_THAT(refusal("\n \n"), HasSubstr("no prompts; expected one JSON object a line"));
}

TEST_F(CliSweep, NamesThePromptThatCannotRunAndRunsNothing) {
  const std::string good = short_prompt(1).dump() + "\n";
  EXPECT_THAT(refusal(good + R"({"messages": [{"role": "user", "content": "hi"}]})", 3),
              HasSubstr("line 2: "));  // needle has no chat form
  std::string ids = "5";
  for (int i = 0; i < 2000; ++i) {
    ids += ",5";
  }
  EXPECT_THAT(refusal(good + R"({"tokens": [)" + ids + "]}", 2),
              HasSubstr("line 2: the prompt has 2001 tokens; the context holds"));
}

TEST_F(CliSweep, RefusesFlagsThatMakeNoSweep) {
  const auto usage_error = [&](std::vector<std::string> arguments) {
    const Outcome outcome = sweep_lines({short_prompt(1)}, arguments);
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_THAT(outcome.out, IsEmpty());
    return outcome.err;
  };
  EXPECT_THAT(usage_error({"--method", "full,half"}), HasSubstr("'half' is not one of"));
  EXPECT_THAT(usage_error({"--budget", "8x"}), HasSubstr("'8x' is not a whole number"));
  EXPECT_THAT(usage_error({"--budget", "8"}), HasSubstr("line 1: --window 32"));
  EXPECT_THAT(usage_error({"--method", "snapkv,tova", "--budget", "40-1000"}),
              HasSubstr("at most 1000"));
  EXPECT_THAT(usage_error({"-o", "xml"}), HasSubstr("'xml' is not one of md, csv, json, jsonl"));
  EXPECT_THAT(usage_error({"--report-file", path("a")}), HasSubstr("would overwrite"));
  const Outcome no_file = needle("sweep", {});
  EXPECT_EQ(no_file.exit_code, 2);
  EXPECT_THAT(no_file.err, HasSubstr("no prompts; give a file"));
  EXPECT_EQ(needle("sweep", {"-f", path("b")}).exit_code, 3);
}

TEST_F(CliSweep, RefusesWhatTheMemoryLimitDoesNotHold) {
  const Outcome outcome = sweep_lines({example(0)}, {"--memory-limit", "1M"});
  EXPECT_EQ(outcome.exit_code, 4);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("a: line 1: the sweep needs"));
}

// Each method's prefill has a peak of its own, on the device and in the pool.
TEST_F(CliSweep, ReportsThePoolOfAMethodThatNeedsLessOfTheDevice) {
  const auto pool_bytes = [&](const std::string& methods) {
    const Outcome outcome =
        sweep_lines({example(0)}, {"--method", methods, "--budget", "256", "-o", "json"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const json report = json::parse(outcome.out).at("prompts").at(0);
    return report.at("pool_bytes").get<std::int64_t>();
  };
  const std::int64_t alone = pool_bytes("headinfer");
  EXPECT_GT(alone, 0);
  EXPECT_EQ(pool_bytes("snapkv,headinfer,block-snap"), alone);
}

TEST_F(CliSweep, GivesWhatIsDoneWhenInterrupted) {
  std::string text;
  for (int i = 0; i < 1000; ++i) {
    text += example(0).dump() + "\n";
  }
  write_file(path("a"), text);
  const pid_t pid =
      start({"sweep", "-m", kNeedle, "-f", path("a"), "-n", "8", "--budget", "256", "-o", "jsonl"},
            path("out"));
  for (int i = 0; i < 600 && lines_of(read_file(path("out"))).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ::kill(pid, SIGINT);
  const Outcome outcome = finish(pid);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_GE(lines.size(), 2U);
  const json summary = json::parse(lines.back());
  EXPECT_EQ(summary.at("complete"), false);
  EXPECT_EQ(summary.at("num_done"), lines.size() - 1);
  EXPECT_EQ(summary.at("num_prompts"), 1000);
}

}  // namespace
}  // namespace tidekv::testing
