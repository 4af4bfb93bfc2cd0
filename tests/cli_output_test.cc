// Where the program's output goes, and what becomes of it when something fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "system/program.h"

namespace tidekv::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CliOutput : public ProgramTest {
 protected:
  // Exit code of `tidekv COMMAND -m needle ARGUMENTS`, as a shell runs it.
  int shell(const std::string& command, const std::string& arguments,
            const std::string& before = "") const {
    const std::string line = before + kProgram + " " + command + " -m " + kNeedle + " " + arguments;
    const int status = std::system(line.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
};

TEST_F(CliOutput, ChecksOutputFilesBeforeTheRun) {
  for (const char* flag : {"--report-file", "--timeline"}) {
    const Outcome outcome = needle("run", {"-p", "a", flag, path("none/report")});
    EXPECT_EQ(outcome.exit_code, 3);
    EXPECT_THAT(outcome.err, HasSubstr(flag));
    EXPECT_THAT(outcome.out, IsEmpty());
  }
}

TEST_F(CliOutput, ReportsWritesThatFail) {
  const Outcome report = needle("run", {"-p", "a", "-n", "1", "--report-file", "/dev/full"});
  EXPECT_EQ(report.exit_code, 3);
  EXPECT_THAT(report.err, HasSubstr("/dev/full: cannot write"));
  const Outcome text =
      run({"run", "-m", kNeedle, "-p", "a", "-n", "9", "--ignore-eos"}, "/dev/full");
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.err, HasSubstr("stdout: cannot write"));
}

TEST_F(CliOutput, LeavesNoEmptyReportAndKeepsAnOldOneWhenItFails) {
  needle("run", {"-p", "a", "-c", "1", "--report-file", path("a")});
  EXPECT_FALSE(exists(path("a")));
  write_file(path("b"), "old");
  needle("run", {"-p", "a", "-c", "1", "--report-file", path("b")});
  EXPECT_EQ(read_file(path("b")), "old");
}

TEST_F(CliOutput, RefusesToOverwriteWhatItReads) {
  write_file(path("in"), "hello");
  const std::vector<std::string> run_it = {"-f", path("in"), "-n", "1"};
  EXPECT_EQ(needle("run", run_it + std::vector<std::string>{"--report-file", path("in")}).exit_code,
            2);
  EXPECT_EQ(read_file(path("in")), "hello");
  const Outcome model =
      needle("run", run_it + std::vector<std::string>{"--timeline", kNeedle + "/config.json"});
  EXPECT_EQ(model.exit_code, 2);
  EXPECT_THAT(model.err, HasSubstr("would overwrite"));
  const Outcome twice = needle(
      "run",
      run_it + std::vector<std::string>{"--timeline", path("a"), "--report-file", path("a")});
  EXPECT_EQ(twice.exit_code, 2);
  EXPECT_FALSE(exists(path("a")));
}

TEST_F(CliOutput, AnswersEvenIfItsMessagesCannotBeWritten) {
  const std::string command =
      kProgram + " run -m " + kNeedle + " -p hi -n 3 --temp 0 >" + path("out") + " 2>/dev/full";
  EXPECT_EQ(std::system(command.c_str()), 0);
  EXPECT_FALSE(read_file(path("out")).empty());
}

// A file that is opened must not take the place of a stream that is closed.
TEST_F(CliOutput, NeverGoesIntoTheReportWhenAStreamIsClosed) {
  const std::string flags = "-p hi -n 3 --temp 0 --ignore-eos --report-file " + path("a.json");
  EXPECT_EQ(shell("run", flags + " >&- 2>" + path("err")), 1);
  EXPECT_THAT(read_file(path("err")), HasSubstr("stdout: cannot write"));
  EXPECT_FALSE(exists(path("a.json")) && !json::accept(read_file(path("a.json"))));
  EXPECT_EQ(shell("run", flags + " 2>&- >" + path("out")), 0);
  EXPECT_EQ(json::parse(read_file(path("a.json"))).at("generated_tokens"), 3);
  write_file(path("a"), R"({"prompt": "The river"})");
  EXPECT_EQ(shell("sweep", "-n 1 -f " + path("a") + " --report-file " + path("b.json") + " >&- 2>" +
                               path("err")),
            1);
  EXPECT_TRUE(json::accept(read_file(path("b.json"))));
  EXPECT_EQ(shell("run", "-f - -n 1 <&- 2>" + path("err")), 3);
}

TEST_F(CliOutput, IsOneFileForOneResultHoweverItIsSpelled) {
  const std::string dotted = path("./a.json");
  const Outcome two =
      needle("run", {"-p", "a", "-n", "1", "--report-file", path("a.json"), "--timeline", dotted});
  EXPECT_EQ(two.exit_code, 2);
  EXPECT_THAT(two.err, HasSubstr("--report-file and --timeline name the same file"));
  EXPECT_FALSE(exists(path("a.json")));
  write_file(path("a"), "old");
  ASSERT_EQ(::link(path("a").c_str(), path("b").c_str()), 0);
  const Outcome fidelity = run({"bench", "fidelity", "-m", kNeedle, "-p", "200", "--budget", "64",
                                "--report-file", path("a"), "--svg", path("b")});
  EXPECT_EQ(fidelity.exit_code, 2);
  EXPECT_THAT(fidelity.err, HasSubstr("--report-file and --svg name the same file"));
  EXPECT_EQ(read_file(path("b")), "old");
}

TEST_F(CliOutput, DoesNotReplaceWhatStdinReads) {
  write_file(path("in"), "hello");
  const Outcome outcome = needle("run", {"-f", "-", "-n", "1", "--report-file", path("in")});
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("would overwrite stdin"));
  EXPECT_EQ(read_file(path("in")), "hello");
}

TEST_F(CliOutput, LeavesNoReportOfARunKilledBeforeItBegan) {
  const std::string flags = "-f - -n 1 --report-file " + path("a.json") + " 2>" + path("err");
  EXPECT_NE(shell("run", flags, "sleep 2 | timeout -s TERM 0.5 "), 0);
  EXPECT_FALSE(exists(path("a.json")));
}

}  // namespace
}  // namespace tidekv::testing
