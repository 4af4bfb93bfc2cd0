// The ledger agrees with the system: VmHWM grows with the prompt as the plan says.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace tidekv::testing {
namespace {

struct Peaks {
  long long planned = 0;
  long long process = 0;
};

// Each prompt length runs in a process of its own: VmHWM never falls.
Peaks peaks_at(int prompt_len) {
  const std::string command = std::string(TIDEKV_BINARY_DIR) + "/peak_probe " + TIDEKV_SOURCE_DIR +
                              "/tests/data/models/toy2 " + std::to_string(prompt_len);
  Peaks peaks;
  std::FILE* output = popen(command.c_str(), "r");
  if (output == nullptr || std::fscanf(output, "%lld %lld", &peaks.planned, &peaks.process) != 2) {
    ADD_FAILURE() << command;
  }
  if (output != nullptr) {
    EXPECT_EQ(pclose(output), 0);
  }
  return peaks;
}

TEST(ProcessPeak, GrowsFrom16KTo64KAsPlannedWithinTwoMebibytes) {
  const Peaks short_prompt = peaks_at(16 * 1024);
  const Peaks long_prompt = peaks_at(64 * 1024);
  const long long planned = long_prompt.planned - short_prompt.planned;
  const long long measured = long_prompt.process - short_prompt.process;
  EXPECT_GT(planned, 8LL << 20);  // otherwise two mebibytes would say little
  EXPECT_LE(std::llabs(measured - planned), 2LL << 20)
      << "planned " << planned << ", measured " << measured;
}

}  // namespace
}  // namespace tidekv::testing
