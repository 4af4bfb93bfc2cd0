// The whole program: parse, execute, report what went wrong, return the exit code.
#pragma once

namespace tidekv::cli {

int run_command_line(int argc, char** argv);

}  // namespace tidekv::cli
