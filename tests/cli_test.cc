// The program as users run it: flags, streams, exit codes, files, Ctrl-C.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "system/program.h"

namespace tidekv::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;

class Cli : public ProgramTest {
 protected:
  static json examples() { return json::parse(read_file(kNeedle + "/examples.json")); }
};

TEST_F(Cli, PrintsVersionAndHelpOnStdout) {
  const Outcome version = run({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, MatchesRegex("tidekv [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  const Outcome help = run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("Exit codes"));
  for (const char* command : {"run", "plan", "inspect", "tokenize", "bench", "sweep"}) {
    EXPECT_THAT(help.out, HasSubstr(command));
    const Outcome own = run({command, "--help"});
    EXPECT_EQ(own.exit_code, 0);
    EXPECT_THAT(own.out, HasSubstr("--model"));
  }
}

TEST_F(Cli, PutsTheAnswerAloneOnStdout) {
  const json example = examples().at(0);
  write_file(path("in"), example.at("prompt").get<std::string>());
  const Outcome outcome = needle("run", {"-f", "-", "-n", "8", "--temp", "0", "--budget", "256"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, StartsWith(example.at("answer").get<std::string>()));
  EXPECT_THAT(outcome.out, Not(HasSubstr("kept")));
  EXPECT_THAT(outcome.err, HasSubstr("kept 256 of 996 tokens a layer"));
}

TEST_F(Cli, SaysSoWhenNothingWasEvicted) {
  const Outcome fits = needle("run", {"-p", "The river kept", "-n", "1"});
  EXPECT_THAT(fits.err, MatchesRegex("kept all [0-9]+ tokens a layer .the prompt fits the "
                                     "budget.\n[^\r]*"));
  const auto said = [&](const std::string& method) {
    return needle("run", {"-p", "The river kept", "-n", "1", "--method", method}).err;
  };
  EXPECT_THAT(said("full"), HasSubstr("(this method drops nothing)"));
  EXPECT_THAT(said("headinfer"), HasSubstr("(this method drops nothing)"));
  EXPECT_THAT(said("kivi-2"), HasSubstr("(this method drops nothing)"));  // all fit the residual
}

TEST_F(Cli, PlansWhatItRunsToTheByte) {
  const std::vector<std::string> flags = {"-p",       examples().at(1).at("prompt"),
                                          "-n",       "5",
                                          "--chunk",  "100",
                                          "--budget", "64",
                                          "--window", "16",
                                          "--report", "json"};
  for (const char* method : {"tidekv-snap", "snapkv", "full"}) {
    const Outcome planned = needle("plan", flags + std::vector<std::string>{"--method", method});
    const Outcome ran = needle(
        "run", flags + std::vector<std::string>{"--method", method, "--report-file", path("a")});
    ASSERT_EQ(planned.exit_code, 0) << planned.err;
    ASSERT_EQ(ran.exit_code, 0) << ran.err;
    const json plan = json::parse(planned.out);
    const json report = json::parse(read_file(path("a")));
    EXPECT_GT(plan.at("peak_bytes"), plan.at("weights_bytes"));
    for (const auto& [key, value] : plan.items()) {
      EXPECT_EQ(report.at(key), value) << method << " " << key;
    }
    for (const char* key :
         {"process_peak_bytes", "prefill_seconds", "compress_seconds", "ttft_seconds",
          "decode_seconds", "decode_steps_seconds", "generated_tokens"}) {
      EXPECT_TRUE(report.contains(key)) << key;
    }
    std::int64_t sum = 0;
    for (const auto& [name, bytes] : plan.at("components").items()) {
      sum += bytes.get<std::int64_t>();
    }
    EXPECT_EQ(sum, plan.at("peak_bytes"));
  }
}

TEST_F(Cli, PlansSeveralMethodsAtOnce) {
  const std::vector<std::string> flags = {"--prompt-len", "2K",       "--method",
                                          "full,snapkv",  "--method", "tidekv-snap"};
  const Outcome text = needle("plan", flags);
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, MatchesRegex("(.|\n)*method +full +snapkv +tidekv-snap\n(.|\n)*"));
  const json plans =
      json::parse(needle("plan", flags + std::vector<std::string>{"--report", "json"}).out);
  ASSERT_EQ(plans.size(), 3U);
  EXPECT_EQ(plans.at(2).at("method"), "tidekv-snap");
  EXPECT_EQ(plans.at(2).at("prompt_len"), 2048);
}

TEST_F(Cli, PlansAPublishedShapeWithoutAModel) {
  const Outcome outcome =
      run({"plan", "--shape", "llama-3.1-8b", "--prompt-len", "64K", "--report", "json"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const json plan = json::parse(outcome.out);
  EXPECT_EQ(plan.at("layers").size(), 32U);
  EXPECT_EQ(plan.at("layers").at(0), (json{{"kept", 4096}, {"total", 65536}}));
  // 32 layers x 2 x 8 KV heads x 4,096 tokens x 128 x 2 bytes.
  EXPECT_EQ(plan.at("final_cache_bytes"), 536870912);
}

TEST_F(Cli, PlansWhatAttentionHolds) {
  for (const auto& [attention, holds] :
       {std::pair("flash", false), std::pair("masked", true), std::pair("eager", true)}) {
    const Outcome outcome = run({"plan", "--shape", "llama-3.1-8b", "--prompt-len", "64K",
                                 "--attention", attention, "--report", "json"});
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const json held = json::parse(outcome.out).at("components").at("attention_scores");
    EXPECT_EQ(held > 0, holds) << attention << ": " << held;
  }
}

TEST_F(Cli, AcceptsSizesAsTheyAreWritten) {
  const std::vector<std::pair<std::string, std::string>> sizes = {
      {"8G", "8,589,934,592"},  {"512M", "536,870,912"}, {"1.5GiB", "1,610,612,736"},
      {"2GB", "2,000,000,000"}, {"64k", "65,536"},       {"1000000", "1,000,000"},
      {"0.5m", "524,288"},
  };
  for (const auto& [typed, shown] : sizes) {
    const Outcome outcome = needle("plan", {"--prompt-len", "10", "--memory-limit", typed});
    EXPECT_THAT(outcome.out, HasSubstr(" " + shown + " ")) << typed << outcome.err;
  }
}

TEST_F(Cli, RefusesWhatDoesNotFitBeforeAnyWork) {
  const std::vector<std::string> flags = {"-p", "The river", "--memory-limit", "1M"};
  const Outcome ran = needle("run", flags);
  EXPECT_EQ(ran.exit_code, 4);
  EXPECT_THAT(ran.out, IsEmpty());
  EXPECT_THAT(ran.err, HasSubstr("1048576"));
  const Outcome planned = needle("plan", flags);
  EXPECT_EQ(planned.exit_code, 4);
  EXPECT_THAT(planned.out, HasSubstr("NO"));
}

TEST_F(Cli, NamesTheFlagAndWhatWouldBeRight) {
  struct Case {
    std::vector<std::string> flags;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {{"--budget", "0"}, "--budget: '0' is not a whole number from 1"},
      {{"--budget", "1e3"}, "--budget: '1e3' is not a whole number"},
      {{"--kernel", "4"}, "--kernel: '4' is even; must be odd"},
      {{"-n", "-2"}, "-n: '-2' is not a whole number from -1"},
      {{"--temp", "nan"}, "--temp: 'nan' is not a number from 0"},
      {{"--top-p", "1.5"}, "--top-p: '1.5' is not a number from 0 to 1"},
      {{"--memory-limit", "8X"}, "--memory-limit: '8X' is not a size"},
      {{"--memory-limit", "0"}, "--memory-limit: '0' is not a size of more than 0 bytes"},
      {{"--memory-limit", "9999999999999T"}, "--memory-limit: '9999999999999T' is not a size"},
      {{"--preset", "h2o"}, "--preset: 'h2o' is not one of kvpress, kvcf"},
      {{"--alpha", "1.5"}, "--alpha: '1.5' is not a number from 0 to 1"},
      {{"--unit", "0"}, "--unit: '0' is not a whole number from 1"},
      {{"--beta", "0"}, "--beta: '0' is not a whole number from 1"},
      {{"--method", "snap"}, "--method: 'snap' is not one of tidekv-snap, "},
      {{"--report", "xml"}, "--report: 'xml' is not one of text, json"},
      {{"--dtype", "f16"}, "--dtype: 'f16' is not one of auto, bf16, f32"},
      {{"--attention", "sdpa"}, "--attention: 'sdpa' is not one of flash, masked, eager"},
      {{"--chunk", "all"}, "--chunk: 'all' is not a whole number"},
      {{"-t", "0"}, "-t: '0' is not a whole number from 1"},
      {{"-s", "x"}, "-s: 'x' is not a whole number"},
      {{"-n"}, "-n: a value is missing"},
      {{"--budgets", "9"}, "--budgets is not a flag; did you mean --budget?"},
      {{"-ngl", "99"}, "-ngl is not a flag here"},
      {{"--report-file="}, "--report-file=: a value is missing"},
      {{"-f", "-"}, "give the prompt once"},
      {{"--tokens", "-"}, "give the prompt once"},
      {{"two", "words"}, "'two' is left over"},
      {{"plan"}, "'plan' is left over"},
      {{"-e", "-p", "\\q"}, "'\\\\q' is not an escape"},
  };
  for (const Case& wrong : cases) {
    const Outcome outcome = needle("run", std::vector<std::string>{"-p", "a"} + wrong.flags);
    EXPECT_EQ(outcome.exit_code, 2) << wrong.expected;
    EXPECT_THAT(outcome.err, HasSubstr(wrong.expected));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
}

TEST_F(Cli, AsksForWhatIsMissing) {
  EXPECT_EQ(run({}).exit_code, 2);
  EXPECT_EQ(run({"walk"}).exit_code, 2);
  EXPECT_THAT(run({"walk"}).err, HasSubstr("'walk' is not a command"));
  EXPECT_THAT(run({"-m", kNeedle, "-p", "a"}).err, HasSubstr("the first word is run, plan"));
  EXPECT_THAT(run({"run", "-p", "a"}).err, HasSubstr("with -m PATH"));
  EXPECT_THAT(needle("run", {}).err, HasSubstr("-p TEXT or -f FILE"));
  EXPECT_THAT(needle("plan", {}).err, HasSubstr("--prompt-len"));
  EXPECT_THAT(run({"plan", "--prompt-len", "9"}).err, HasSubstr("-m PATH or --shape"));
}

TEST_F(Cli, GoesBeyondTheModelsContextOnlyWhenTold) {
  const std::vector<std::string> flags = {"--prompt-len", "50000", "-c", "60000"};
  const Outcome refused = needle("plan", flags);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("-c 60000: the model's context is 32768 tokens; expected 1 to "
                                     "that, or --beyond-context"));
  EXPECT_EQ(needle("plan", flags + std::vector<std::string>{"--beyond-context"}).exit_code, 0);
  EXPECT_THAT(needle("plan", {"--prompt-len", "500", "--beyond-context"}).err,
              HasSubstr("--beyond-context: expected a context length with it, -c N"));
}

TEST_F(Cli, NamesTheFlagWhosePathIsEmpty) {
  const Outcome file = needle("run", {"-f", ""});
  EXPECT_EQ(file.exit_code, 2);
  EXPECT_THAT(file.err, HasSubstr("-f: the path is empty; expected a file, or - for stdin"));
  const Outcome model = run({"run", "-m", "", "-p", "a"});
  EXPECT_EQ(model.exit_code, 2);
  EXPECT_THAT(model.err, HasSubstr("-m: the path is empty; expected a model folder"));
}

TEST_F(Cli, EscapesControlBytesInMessages) {
  const Outcome model = run({"inspect", "-m", "no\x1b[31m\n\xff\\model"});
  EXPECT_EQ(model.exit_code, 3);
  EXPECT_THAT(model.err, StartsWith("tidekv: error: no\\x1B[31m\\n\\xFF\\model: cannot open"));
  ASSERT_EQ(::setenv("TIDEKV_BACKEND", "\x1b[31m", 1), 0);
  const Outcome backend = needle("inspect", {});
  ::unsetenv("TIDEKV_BACKEND");
  EXPECT_EQ(backend.exit_code, 2);
  EXPECT_THAT(backend.err, HasSubstr("TIDEKV_BACKEND: no backend '\\x1B[31m' on this machine"));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they map more than this
// The stacks of a thousand threads exceed this address space; the model and one thread do not.
TEST_F(Cli, NamesTheNumberOfThreadsTheSystemRefuses) {
  const std::string command = "ulimit -v 1000000 && exec " + kProgram + " run -m " + kNeedle +
                              " -p a -n 1 -t 1000 2>" + path("err");
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 5);
  EXPECT_THAT(read_file(path("err")),
              HasSubstr("-t 1000: the system does not start that many threads"));
}
#endif

TEST_F(Cli, ReportsFilesThatCannotBeRead) {
  const Outcome no_model = run({"run", "-m", path("none"), "-p", "a"});
  EXPECT_EQ(no_model.exit_code, 3);
  EXPECT_THAT(no_model.err, HasSubstr(path("none")));
  const Outcome no_prompt = needle("run", {"-f", path("none")});
  EXPECT_EQ(no_prompt.exit_code, 3);
  EXPECT_THAT(no_prompt.err, HasSubstr(path("none")));
  EXPECT_EQ(needle("run", {"-f", path("")}).exit_code, 3);
}

TEST_F(Cli, InspectsConfigTensorsAndTokenizer) {
  const Outcome text = needle("inspect", {});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("32,768 tokens"));
  EXPECT_THAT(text.out, HasSubstr("model.embed_tokens.weight"));
  const json model = json::parse(needle("inspect", {"--report", "json"}).out);
  EXPECT_EQ(model.at("num_layers"), 6);
  EXPECT_EQ(model.at("vocab_size"), 4096);
  std::int64_t bytes = 0;
  for (const json& tensor : model.at("tensors")) {
    bytes += tensor.at("num_bytes").get<std::int64_t>();
  }
  EXPECT_EQ(bytes, model.at("weights_bytes"));
}

TEST_F(Cli, GeneratesUpToTheContextWithMinusOne) {
  const std::vector<std::string> flags = {"-p", "a b c", "-n", "-1", "--ignore-eos"};
  const json plan =
      json::parse(needle("plan", flags + std::vector<std::string>{"--report", "json"}).out);
  const std::int64_t context = plan.at("prompt_len").get<std::int64_t>() + 5;
  const Outcome outcome =
      needle("run", flags + std::vector<std::string>{"-c", std::to_string(context), "--report-file",
                                                     path("a.json")});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(json::parse(read_file(path("a.json"))).at("generated_tokens"), 5);
}

TEST_F(Cli, RepeatsASeededRun) {
  const std::vector<std::string> flags = {"-p", " Dolphin travel orbit", "-n", "24", "--temp",
                                          "2",  "--ignore-eos"};
  const auto text = [&](const char* seed) {
    return needle("run", flags + std::vector<std::string>{"-s", seed}).out;
  };
  const std::string first = text("7");
  EXPECT_EQ(text("7"), first);
  EXPECT_NE(text("8"), first);
}

TEST_F(Cli, WritesATimelineWhoseHighestPointIsThePeak) {
  const std::vector<std::string> flags = {"-p",
                                          examples().at(0).at("prompt"),
                                          "-n",
                                          "3",
                                          "--budget",
                                          "100",
                                          "--timeline",
                                          path("a.csv"),
                                          "--report-file",
                                          path("a.json")};
  for (const char* command : {"plan", "run"}) {
    const Outcome outcome = needle(command, flags);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    std::istringstream csv(read_file(path("a.csv")));
    std::string line;
    std::getline(csv, line);
    EXPECT_EQ(line, "method,stage,layer,component,delta_bytes,live_bytes");
    std::int64_t highest = 0;
    std::int64_t live = 0;
    while (std::getline(csv, line)) {
      const std::size_t last = line.rfind(',');
      const std::size_t before = line.rfind(',', last - 1);
      live += std::stoll(line.substr(before + 1));
      EXPECT_EQ(live, std::stoll(line.substr(last + 1)));
      highest = std::max(highest, live);
    }
    EXPECT_EQ(highest, json::parse(read_file(path("a.json"))).at("peak_bytes"));
  }
}

TEST_F(Cli, GivesEqualDigestsForEqualWork) {
  const auto digests = [&](const char* key_block) {
    needle("run", {"-p", examples().at(0).at("prompt"), "-n", "1", "--budget", "64", "--digest",
                   "--key-block", key_block, "--report-file", path("a.json")});
    return json::parse(read_file(path("a.json"))).at("digests");
  };
  const json first = digests("1024");
  ASSERT_EQ(first.size(), 6U);
  EXPECT_THAT(first.at(5).at("cache").get<std::string>(), MatchesRegex("[0-9a-f]{16}"));
  EXPECT_NE(first.at(4), first.at(5));
  EXPECT_EQ(digests("100"), first);
}

// About 25,000 tokens, one sentence after another.
std::string long_prompt() {
  std::string text;
  while (text.size() < 100000) {
    text += " Rain fell on the quiet hills. The river kept its slow pace.";
  }
  return text;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::chrono::seconds kStopLimit{5};  // every step takes several times as long
#else
constexpr std::chrono::seconds kStopLimit{1};
#endif

// Waits until stderr has `text`, for a minute at most.
void wait_for(const std::string& err_file, const std::string& text) {
  const auto begun = std::chrono::steady_clock::now();
  while (read_file(err_file).find(text) == std::string::npos &&
         std::chrono::steady_clock::now() - begun < std::chrono::seconds(60)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// Whole prompt at once: only the kernels can stop early.
TEST_F(Cli, StopsWithinASecondOfCtrlCOrSigterm) {
  write_file(path("a"), long_prompt());
  for (const std::vector<std::string>& method :
       {std::vector<std::string>{"--method", "tidekv-snap", "--chunk", "64"},
        std::vector<std::string>{"--method", "snapkv"}}) {
    const pid_t pid = start(
        std::vector<std::string>{"run", "-v", "-m", kNeedle, "-f", path("a"), "-t", "1"} + method,
        path("out"));
    wait_for(path("err"), "plan: ");
    std::this_thread::sleep_for(std::chrono::milliseconds(500));  // into the prefill
    ASSERT_EQ(::kill(pid, method[1] == "snapkv" ? SIGINT : SIGTERM), 0);
    const auto sent = std::chrono::steady_clock::now();
    const Outcome outcome = finish(pid);
    EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
    EXPECT_LT(std::chrono::steady_clock::now() - sent, kStopLimit) << method[1];
    EXPECT_THAT(outcome.out, IsEmpty());
  }
}

// One thread of the slowest kernels: many seconds on any machine.
TEST_F(Cli, ShowsLayerSpeedAndTimeLeftOfALongPrefill) {
  write_file(path("a"), long_prompt());
  ASSERT_EQ(::setenv("TIDEKV_BACKEND", "cpu-portable", 1), 0);
  const pid_t pid = start({"run", "-m", kNeedle, "-f", path("a"), "-t", "1"}, path("out"));
  ::unsetenv("TIDEKV_BACKEND");
  wait_for(path("err"), " left\n");
  ASSERT_EQ(::kill(pid, SIGINT), 0);
  const Outcome outcome = finish(pid);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, MatchesRegex("prefill: layer [1-6] of 6, [0-9]+ %, [0-9,.]+ tokens/s, "
                                        "[0-9]+:[0-9][0-9] left\n(.|\n)*"));
}

TEST_F(Cli, ShowsNoProgressForAQuickPrefill) {
  const Outcome outcome = needle("run", {"-p", "The river", "-n", "1"});
  EXPECT_THAT(outcome.err, Not(HasSubstr("prefill: layer")));
}

// A preset is the flags it stands for; flags behind it change it, and its budgets are the
// program's.
TEST_F(Cli, PresetsAreWindowPoolingAndBudgetsOfOtherPrograms) {
  const auto digests = [&](const std::vector<std::string>& flags) {
    const Outcome outcome = needle(
        "run", std::vector<std::string>{"-p", examples().at(0).at("prompt"), "-n", "1", "--budget",
                                        "96", "--digest", "--report-file", path("a.json")} +
                   flags);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(read_file(path("a.json"))).at("digests");
  };
  const json kvpress = digests({"--preset", "kvpress"});
  EXPECT_EQ(digests({"--window", "64", "--kernel", "5", "--pool", "avg"}), kvpress);
  EXPECT_NE(digests({}), kvpress);
  EXPECT_EQ(digests({"--preset", "kvcf", "--window", "32", "--kernel", "7"}), digests({}));

  const auto kept = [&](const std::vector<std::string>& flags) {
    std::int64_t sum = 0;
    const Outcome outcome =
        run(std::vector<std::string>{"plan", "--shape", "llama-3.1-8b", "--prompt-len", "100000",
                                     "--budget", "1024", "--window", "32", "--method",
                                     "tidekv-pyramid", "--report", "json"} +
            flags);
    const json plan = json::parse(outcome.out);
    for (const json& layer : plan.at("layers")) {
      sum += layer.at("kept").get<std::int64_t>();
    }
    return sum;
  };
  EXPECT_EQ(kept({}), 32 * 1024);
  EXPECT_EQ(kept({"--preset", "kvcf", "--window", "32"}), 32 * 1024 + 416);
}

}  // namespace
}  // namespace tidekv::testing
