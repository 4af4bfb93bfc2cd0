#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "command_line.h"

namespace {

// A file opened later must not become stdin, stdout or stderr because that was closed. What stands
// in for one fails as a closed one does: stdin cannot be read, the others cannot be written.
void keep_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) < 0) {
      ::open("/dev/null",
             fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);  // takes the lowest, which is fd
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  keep_standard_streams();
  // A reader of our output that goes away is a failed write, reported like any other.
  std::signal(SIGPIPE, SIG_IGN);
  return tidekv::cli::run_command_line(argc, argv);
}
