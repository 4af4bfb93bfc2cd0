// Help for command lines that do not parse.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace tidekv::cli {

// The arguments with llama-bench's -pg and -oe spelled as the parser can read them.
std::vector<std::string> readable_arguments(std::vector<std::string> arguments);

// What is wrong with arguments that the parser would take for something else: `--file=` without a
// value would swallow the next flag, and `-fa` of llama.cpp would be a file named "a".
std::optional<std::string> hint_before_parsing(const std::vector<std::string>& arguments);

// After a parse that left arguments over: which, and the flag or command it may have meant.
std::string explain_extras(const CLI::App& program);

// " (see tidekv run --help)".
std::string see_help(const CLI::App& program);

}  // namespace tidekv::cli
