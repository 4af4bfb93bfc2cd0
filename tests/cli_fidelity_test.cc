// tidekv bench fidelity: its tables, its data, its plot, and what it says of requests that are
// wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "system/program.h"

namespace tidekv::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class CliFidelity : public ProgramTest {
 protected:
  Outcome fidelity(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"bench", "fidelity", "-m", kNeedle, "-t", "1"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return run(all);
  }
  // One short random prompt, cut several times.
  Outcome quick(const std::vector<std::string>& more) {
    std::vector<std::string> all = {
        "-p",       "300", "--prompts", "1",
        "--budget", "64",  "-C",        "60",
        "--next",   "4",   "--method",  "tide-noevict,tidekv-snap,block-snap,block-recent"};
    all.insert(all.end(), more.begin(), more.end());
    return fidelity(all);
  }
  json quick_json(const std::vector<std::string>& more) {
    std::vector<std::string> all = {"-o", "json"};
    all.insert(all.end(), more.begin(), more.end());
    const Outcome outcome = quick(all);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(outcome.out);
  }
  std::string refusal(const std::vector<std::string>& arguments, int exit_code = 2) {
    const Outcome outcome = fidelity(arguments);
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
    EXPECT_THAT(outcome.out, IsEmpty());
    return outcome.err;
  }
};

std::vector<std::string> keys_of(const json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) {
    keys.push_back(key);
  }
  return keys;  // in alphabetical order
}

TEST_F(CliFidelity, DelayedEvictionDoesNotDriftAndImmediateDoes) {
  const json targets = quick_json({}).at("targets");
  ASSERT_EQ(targets.size(), 4U);
  for (const json& target : {targets[0], targets[1]}) {
    EXPECT_EQ(target.at("relative_l2"), 0.0);
    EXPECT_EQ(target.at("cosine"), 1.0);
    EXPECT_EQ(target.at("equal_rows"), 1.0);
    EXPECT_EQ(target.at("top1_agreement"), 1.0);
    EXPECT_EQ(target.at("js_divergence"), 0.0);
    EXPECT_EQ(target.at("control_minus_method"), 0.0);
  }
  EXPECT_EQ(targets[0].at("kl_max"), 0.0);
  EXPECT_GT(targets[1].at("kl_max"), 0.0);
  const double snap = targets[2].at("relative_l2");
  EXPECT_GT(snap, 0.05);
  EXPECT_GT(targets[3].at("relative_l2"), snap);
}

TEST_F(CliFidelity, HasTheseKeys) {
  const json all = quick_json({});
  EXPECT_EQ(keys_of(all),
            (std::vector<std::string>{"backend", "budgets", "chunk_len", "compute_type", "model",
                                      "num_next", "num_prefills", "num_prompts", "prompts",
                                      "schema_version", "targets"}));
  EXPECT_EQ(all.at("schema_version"), 1);
  EXPECT_EQ(all.at("chunk_len"), 60);
  EXPECT_EQ(all.at("budgets"), json({64}));
  EXPECT_EQ(all.at("num_prefills"), 5);
  const json& target = all.at("targets").at(2);
  EXPECT_EQ(keys_of(target),
            (std::vector<std::string>{"budget", "chunks", "control", "control_minus_method",
                                      "cosine", "equal_rows", "full_minus_control",
                                      "full_minus_method", "js_divergence", "kl_by_token", "kl_max",
                                      "kl_mean", "layers", "log_probability", "method", "prefill",
                                      "prefill_seconds", "relative_l2", "top1_agreement"}));
  EXPECT_EQ(target.at("method"), "block-snap");
  EXPECT_EQ(target.at("budget"), 64);
  EXPECT_EQ(all.at("targets").at(0).at("budget"), 0);  // keeps everything
  EXPECT_EQ(target.at("control"), "snapkv");
  EXPECT_EQ(target.at("layers").size(), 6U);
  EXPECT_EQ(target.at("chunks").size(), 5U);
  EXPECT_EQ(target.at("kl_by_token").size(), 4U);
  EXPECT_EQ(keys_of(target.at("layers").at(0)),
            (std::vector<std::string>{"cosine", "relative_l2"}));
  const json& prompt = all.at("prompts").at(0);
  EXPECT_EQ(keys_of(prompt), (std::vector<std::string>{
                                 "continuation", "id", "log_probability", "peak_bytes",
                                 "prefill_seconds", "prompt_len", "reference_bytes", "targets"}));
  EXPECT_EQ(prompt.at("id"), "1");
  EXPECT_EQ(prompt.at("prompt_len"), 300);
  EXPECT_EQ(keys_of(prompt.at("targets").at(2)),
            (std::vector<std::string>{"budget", "cosine", "js_divergence", "kl_mean",
                                      "log_probability", "method", "num_equal_rows", "num_rows",
                                      "relative_l2", "top1_agrees"}));
}

TEST_F(CliFidelity, PrintsTables) {
  const Outcome outcome = quick({"--budget", "64,40,64"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_GT(lines.size(), 8U);
  EXPECT_THAT(lines[0], StartsWith("1 prompt of 300 tokens, chunk 60, budget 64; cpu-"));
  EXPECT_THAT(lines[2], StartsWith("| method           | hidden rel. L2 | cosine | equal rows |"));
  EXPECT_THAT(lines[4], StartsWith("| full (reference) |              0 |      1 |"));
  EXPECT_THAT(lines[5], StartsWith("| tide-noevict     |              0 |      1 |"));
  EXPECT_THAT(lines[6], AllOf(StartsWith("| tidekv-snap      |              0 |      1 |"),
                              HasSubstr("shared")));
  EXPECT_THAT(lines[7],
              AllOf(StartsWith("| block-snap       | "), HasSubstr(" 0."), HasSubstr("own")));
  EXPECT_THAT(outcome.out, HasSubstr("\n| method       |    40 |    64 |\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\n| chunk | block-snap | block-recent | all others |\n"));
  EXPECT_THAT(outcome.out, HasSubstr("\n| 4     |"));
  EXPECT_THAT(outcome.out, HasSubstr("\n| tidekv-snap  |  snapkv |"));
}

TEST_F(CliFidelity, WritesEverythingAndAPlotToFiles) {
  const Outcome outcome =
      quick({"--budget", "64,40", "--report-file", path("a.json"), "--svg", path("b")});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(json::parse(read_file(path("a.json"))).at("targets").size(), 7U);
  const std::string svg = read_file(path("b"));
  EXPECT_THAT(svg, StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox="));
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
  EXPECT_THAT(svg, AllOf(HasSubstr(">block-snap<"), HasSubstr(">block-recent<"),
                         HasSubstr("prefers-color-scheme: dark"),
                         HasSubstr("tide-noevict, tidekv-snap: 0, bit for bit"),
                         Not(HasSubstr("<script")), Not(HasSubstr("nan"))));
}

TEST_F(CliFidelity, ReadsTheFileOfASweep) {
  write_file(path("a"), json{{"prompt", "The secret number is 12. " + std::string(200, 'x')},
                             {"answer", "12"},
                             {"id", "one"}}
                                .dump() +
                            "\n" + json{{"prompt", "The other number is 13"}}.dump() + "\n");
  const Outcome outcome =
      fidelity({"-f", path("a"), "--prompts", "1", "--budget", "16", "--window", "8", "-C", "20",
                "--next", "2", "-o", "json", "--method", "block-snap"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json all = json::parse(outcome.out);
  EXPECT_EQ(all.at("num_prompts"), 1);
  EXPECT_EQ(all.at("prompts").at(0).at("id"), "one");
}

TEST_F(CliFidelity, RefusesRequestsThatAreWrong) {
  EXPECT_THAT(refusal({}), HasSubstr("no prompts; give a file"));
  EXPECT_THAT(refusal({"-p", "300", "-f", path("a")}), HasSubstr("-f and -p: expected one"));
  EXPECT_THAT(refusal({"-f", ""}), HasSubstr("-f: the path is empty"));
  EXPECT_THAT(refusal({"-p", "300", "--method", "block-half"}),
              HasSubstr("'block-half' is not one of"));
  EXPECT_THAT(refusal({"-p", "300", "--budget", "64,"}), HasSubstr("--budget"));
  EXPECT_THAT(refusal({"-p", "300", "--budget", "0"}), HasSubstr("--budget"));
  EXPECT_THAT(refusal({"-p", "300"}),
              HasSubstr("random prompt 1: --budget 1024: the prompt has 300 tokens, so that "
                        "tidekv-snap would evict nothing"));
  EXPECT_THAT(refusal({"-p", "40000"}), HasSubstr("-p 40000: the context holds 32768 tokens"));
  EXPECT_THAT(refusal({"-p", "32768"}), HasSubstr("the context has room for 0"));
  EXPECT_THAT(refusal({"-p", "300", "-o", "svg"}), HasSubstr("'svg' is not one of md, json"));
  EXPECT_THAT(
      refusal({"-p", "300", "--budget", "64", "--svg", path("a"), "--report-file", path("a")}),
      HasSubstr("name the same file"));
  EXPECT_THAT(refusal({"-p", "300", "--bugdet", "64"}),
              HasSubstr("did you mean --budget? (see tidekv bench fidelity --help)"));
}

TEST_F(CliFidelity, RefusesFilesThatAreWrong) {
  EXPECT_THAT(refusal({"-f", path("b")}, 3), HasSubstr("cannot read"));
  write_file(path("a"), "\n");
  EXPECT_THAT(refusal({"-f", path("a")}, 3), HasSubstr("no prompts; expected one JSON object"));
  write_file(path("a"), R"({"prompt": ""})");
  EXPECT_THAT(refusal({"-f", path("a")}, 3), HasSubstr("expected a string that is not empty"));
  write_file(path("a"), R"({"prompt": "short"})");
  EXPECT_THAT(refusal({"-f", path("a"), "--budget", "64"}),
              HasSubstr("a: line 1: --budget 64: the prompt has"));
  EXPECT_THAT(refusal({"-f", path("a"), "--svg", path("a")}), HasSubstr("would overwrite"));
}

TEST_F(CliFidelity, RefusesWhatTheMemoryLimitDoesNotHold) {
  EXPECT_THAT(refusal({"-p", "300", "--budget", "64", "--memory-limit", "1M"}, 4),
              HasSubstr("random prompt 1: the comparison needs"));
}

TEST_F(CliFidelity, WritesNothingWhenInterrupted) {
  const pid_t pid = start({"bench", "fidelity", "-m", kNeedle, "-p", "16K", "--prompts", "20",
                           "--report-file", path("a.json"), "--svg", path("b")},
                          path("out"));
  // Two seconds after the first prefill began it says where it stands.
  for (int i = 0; i < 600 && read_file(path("err")).find("run 1 of") == std::string::npos; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  ::kill(pid, SIGINT);
  const Outcome outcome = finish(pid);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_FALSE(exists(path("a.json")));
  EXPECT_FALSE(exists(path("b")));
}

}  // namespace
}  // namespace tidekv::testing
