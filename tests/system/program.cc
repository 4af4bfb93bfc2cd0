#include "system/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace tidekv::testing {

const std::string kProgram = TIDEKV_BINARY_DIR "/tidekv";
const std::string kNeedle = TIDEKV_SOURCE_DIR "/models/needle";

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

void write_file(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

void ProgramTest::SetUp() {
  std::string pattern = ::testing::TempDir() + "tidekv_cli_XXXXXX";
  ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
}

void ProgramTest::TearDown() {
  for (const char* name : {"in", "out", "err", "a", "b", "a.json", "b.json", "a.csv"}) {
    ::unlink(path(name).c_str());
  }
  ::rmdir(folder_.c_str());
}

void ProgramTest::use_program(const std::string& name) {
  program_ = std::string(TIDEKV_BINARY_DIR) + "/" + name;
}

pid_t ProgramTest::start(std::vector<std::string> arguments, const std::string& out) {
  arguments.insert(arguments.begin(), program_);
  std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, path("in").c_str(), O_RDONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, 1, out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&actions, 2, path("err").c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  pid_t pid = -1;
  const int failure =
      ::posix_spawn(&pid, program_.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(failure, 0) << program_;
  return pid;
}

Outcome ProgramTest::finish(pid_t pid) {
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_file(path("out")),
          read_file(path("err"))};
}

Outcome ProgramTest::run(const std::vector<std::string>& arguments, const std::string& out) {
  return finish(start(arguments, out.empty() ? path("out") : out));
}

Outcome ProgramTest::needle(const std::string& command, const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {command, "-m", kNeedle};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return run(all);
}

}  // namespace tidekv::testing
