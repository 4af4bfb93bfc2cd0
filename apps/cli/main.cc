#include <csignal>

#include "command_line.h"

int main(int argc, char** argv) {
  // A reader of our output that goes away is a failed write, reported like any other.
  std::signal(SIGPIPE, SIG_IGN);
  return tidekv::cli::run_command_line(argc, argv);
}
