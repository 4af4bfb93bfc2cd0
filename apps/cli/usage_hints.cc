#include "usage_hints.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <numeric>
#include <string_view>

#include "text_layout.h"

namespace tidekv::cli {
namespace {

struct ForeignFlag {
  std::string_view name;
  std::string_view instead;
};

// Flags that fingers know from llama.cpp and that have another name here, or no use.
constexpr ForeignFlag kForeignFlags[] = {
    {"-b", "--chunk sets how many prompt tokens run at once"},
    {"--batch-size", "--chunk sets how many prompt tokens run at once"},
    {"-ub", "--chunk sets how many prompt tokens run at once"},
    {"--ubatch-size", "--chunk sets how many prompt tokens run at once"},
    {"-ctk", "--dtype sets the type of the cache"},
    {"--cache-type-k", "--dtype sets the type of the cache"},
    {"-ctv", "--dtype sets the type of the cache"},
    {"--cache-type-v", "--dtype sets the type of the cache"},
    {"-ngl", "this build runs on the CPU"},
    {"--gpu-layers", "this build runs on the CPU"},
    {"--n-gpu-layers", "this build runs on the CPU"},
    {"-fa", "attention works in blocks unless --attention says otherwise; leave it out"},
    {"--flash-attn", "attention works in blocks unless --attention says otherwise; leave it out"},
    {"-tb", "-t sets the threads of prefill and decode"},
    {"--threads-batch", "-t sets the threads of prefill and decode"},
    {"--keep", "--sinks keeps the first tokens"},
    {"-bf", "-f reads any bytes"},
    {"--binary-file", "-f reads any bytes"},
    {"-sys", "there is no chat template; the prompt holds everything"},
    {"-cnv", "--chat answers one message in the model's chat form; there are no more turns"},
    {"-no-cnv", "there is no chat mode; leave it out"},
    {"--no-mmap", "weights are always mapped; leave it out"},
    {"--mlock", "weights are always mapped; leave it out"},
    {"--no-display-prompt", "the prompt is never printed; leave it out"},
    {"-hf", "give -m a model folder"},
    {"-fit", "give --memory-limit; tidekv plan tells what fits"},
    {"-sm", "this build runs on the CPU"},
    {"-mg", "this build runs on the CPU"},
    {"-ts", "this build runs on the CPU"},
    {"-ot", "this build runs on the CPU"},
    {"-dev", "this build runs on the CPU"},
    {"-rpc", "this build runs on the CPU"},
    {"-nkvo", "this build runs on the CPU"},
    {"-nopo", "this build runs on the CPU"},
    {"-ncmoe", "this build runs on the CPU"},
    {"-mmp", "weights are always mapped; leave it out"},
    {"-dio", "weights are always mapped; leave it out"},
    {"-embd", "there are no embeddings to compute; leave it out"},
};

// Flags whose value may be any text, also one that looks like a flag.
bool takes_any_text(std::string_view flag) {
  constexpr std::string_view kNames[] = {"-p",         "--prompt", "-f",      "--file",
                                         "--tokens",   "-m",       "--model", "--report-file",
                                         "--timeline", "--svg"};
  return std::find(std::begin(kNames), std::end(kNames), flag) != std::end(kNames);
}

// Single-character insertions, deletions and replacements between two words.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

// The command of a command, if one was given.
const CLI::App& chosen_app(const CLI::App& program) {
  const CLI::App* app = &program;
  for (auto chosen = app->get_subcommands(); !chosen.empty(); chosen = app->get_subcommands()) {
    app = chosen.front();
  }
  return *app;
}

// "bench fidelity ".
std::string words_of(const CLI::App& app) {
  return app.get_parent() == nullptr ? "" : words_of(*app.get_parent()) + app.get_name() + " ";
}

// The long flag of `app` that looks most like `typed`, if any looks like it.
std::string nearest_flag(const CLI::App& app, const std::string& typed) {
  const std::string name = typed.substr(0, std::min<std::size_t>(typed.find('='), 40));
  std::string best;
  std::size_t least = name.size() / 3 + 1;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& known : option->get_lnames()) {
      const std::size_t distance = edit_distance(name, "--" + known);
      if (distance < least) {
        least = distance;
        best = "--" + known;
      }
    }
  }
  return best;
}

}  // namespace

std::vector<std::string> readable_arguments(std::vector<std::string> arguments) {
  if (!arguments.empty() && arguments.front() == "bench") {
    std::replace(arguments.begin(), arguments.end(), std::string("-pg"), std::string("--pg"));
    std::replace(arguments.begin(), arguments.end(), std::string("-oe"),
                 std::string("--output-err"));
  }
  return arguments;
}

std::optional<std::string> hint_before_parsing(const std::vector<std::string>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (i > 0 && takes_any_text(arguments[i - 1])) {
      continue;
    }
    if (argument.size() > 3 && argument.starts_with("--") &&
        argument.find('=') + 1 == argument.size()) {
      return fmt::format("{}: a value is missing after =", printable(argument.substr(0, 60)));
    }
    for (const ForeignFlag& foreign : kForeignFlags) {
      if (argument == foreign.name) {
        return fmt::format("{} is not a flag here: {}", foreign.name, foreign.instead);
      }
    }
  }
  return std::nullopt;
}

std::string explain_extras(const CLI::App& program) {
  const std::vector<std::string> left = program.remaining(true);
  const auto flag = std::find_if(left.begin(), left.end(),
                                 [](const std::string& argument) { return argument[0] == '-'; });
  const std::string typed = flag != left.end() ? *flag : left.empty() ? "" : left.front();
  const std::string shown = printable(typed.substr(0, 60));
  if (program.get_subcommands().empty()) {
    return fmt::format(
        "'{}' is not a command; the first word is run, plan, inspect, tokenize, bench or sweep",
        left.empty() ? "" : printable(left.front().substr(0, 60)));
  }
  if (flag == left.end()) {
    return fmt::format("'{}' is left over; a text with spaces needs quotes{}", shown,
                       see_help(program));
  }
  const std::string nearest = nearest_flag(chosen_app(program), typed);
  return fmt::format("{} is not a flag{}{}", shown,
                     nearest.empty() ? "" : "; did you mean " + nearest + "?", see_help(program));
}

std::string see_help(const CLI::App& program) {
  return fmt::format(" (see tidekv {}--help)", words_of(chosen_app(program)));
}

}  // namespace tidekv::cli
