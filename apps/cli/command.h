// One word after `tidekv`: its flags and what it does.
#pragma once

#include "tidekv/result.h"

namespace CLI {
class App;
}

namespace tidekv::cli {

class Command {
 public:
  Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  virtual ~Command() = default;

  // Adds the subcommand with its flags, which point into this object; called once.
  virtual CLI::App* add_to(CLI::App& program) = 0;

  // After parsing. The exit code, or what went wrong.
  virtual Result<int> execute() = 0;
};

}  // namespace tidekv::cli
