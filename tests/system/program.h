// The program as users run it: a test fixture that starts it and reads what it wrote.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace tidekv::testing {

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& content);
bool exists(const std::string& path);
std::vector<std::string> lines_of(const std::string& text);

extern const std::string kProgram;  // path of tidekv
extern const std::string kNeedle;   // of models/needle

struct Outcome {
  int exit_code = -1;  // negative: the signal that ended it
  std::string out;
  std::string err;
};

// A folder of its own for every test, removed after it with the files "in", "out", "err", "a", "b",
// "a.json", "b.json" and "a.csv".
class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  // Another program of the build folder than tidekv.
  void use_program(const std::string& name);

  // Starts the program with stdin from the file "in" and output to the files "out" and "err".
  pid_t start(std::vector<std::string> arguments, const std::string& out);
  // Waits for it.
  Outcome finish(pid_t pid);
  Outcome run(const std::vector<std::string>& arguments, const std::string& out = "");
  // `tidekv COMMAND -m needle ARGUMENTS`.
  Outcome needle(const std::string& command, const std::vector<std::string>& arguments);

 private:
  std::string folder_;
  std::string program_ = kProgram;
};

// Arguments behind arguments.
inline std::vector<std::string> operator+(std::vector<std::string> a,
                                          const std::vector<std::string>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace tidekv::testing
