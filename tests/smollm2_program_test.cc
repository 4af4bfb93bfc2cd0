// The program with a real, quantised model: the README's command, and what the process holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <string>

#include "system/program.h"

namespace tidekv::testing {
namespace {

using nlohmann::json;

const std::string kSmolLm2 = TIDEKV_SOURCE_DIR "/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

class SmolLm2Program : public ProgramTest {
 protected:
  json report_of(const Outcome& outcome) {
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return json::parse(read_file(path("a.json")));
  }
};

TEST_F(SmolLm2Program, AnswersAQuestionAboutADocumentFromPartOfIt) {
  write_file(path("a"), read_file(TIDEKV_SOURCE_DIR "/LICENSE") +
                            "\nDoes this license come with a warranty? Answer in one sentence.\n");
  const Outcome outcome = run({"run", "-m", kSmolLm2, "--chat", "-f", path("a"), "--budget", "512",
                               "--temp", "0", "-n", "60", "--report-file", path("a.json")});
  const json report = report_of(outcome);
  EXPECT_THAT(outcome.out, ::testing::HasSubstr("warranty"));
  EXPECT_EQ(report.at("stop_reason"), "eos");
  EXPECT_EQ(report.at("layers").at(0).at("kept"), 512);
  EXPECT_GT(report.at("layers").at(0).at("total").get<int>(), 2000);
}

#if defined(NDEBUG) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The file, what was reserved, and the program with its tokenizer. Weights expanded to BF16 would
// take 269 MB more.
TEST_F(SmolLm2Program, HoldsTheMappedFileAndWhatThePlanSaysButNoExpandedWeights) {
  constexpr std::int64_t kProgramAndTokenizer = 32 << 20;
  struct stat file {};
  ASSERT_EQ(::stat(kSmolLm2.c_str(), &file), 0);
  const json report = report_of(run({"run", "-m", kSmolLm2, "-p", "The capital of France is", "-n",
                                     "8", "--temp", "0", "--report-file", path("a.json")}));
  EXPECT_LE(report.at("process_peak_bytes").get<std::int64_t>(),
            file.st_size + report.at("reserved_bytes").get<std::int64_t>() + kProgramAndTokenizer);
}
#endif

}  // namespace
}  // namespace tidekv::testing
