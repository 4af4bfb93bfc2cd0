#include "command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "bench_command.h"
#include "command.h"
#include "exit_codes.h"
#include "inspect_command.h"
#include "output.h"
#include "plan_command.h"
#include "run_command.h"
#include "sweep_command.h"
#include "text_layout.h"
#include "tidekv/engine.h"
#include "tokenize_command.h"
#include "usage_hints.h"

namespace tidekv::cli {
namespace {

constexpr const char* kDescription =
    "TideKV: long prompts on small memory. Answers with a planned peak, and evicts the KV cache\n"
    "of a layer only after the layer has seen the whole prompt.";

constexpr const char* kExitCodes =
    "Generated text and listings go to stdout, everything else to stderr.\n"
    "Exit codes: 0 done, 1 other failure, 2 wrong flags or request, 3 a file that is missing,\n"
    "damaged, not supported or not writable, 4 does not fit the memory limit, 5 out of memory,\n"
    "130 interrupted.";

int fail(const std::string& message, int exit_code) {
  print_message(fmt::format("tidekv: error: {}\n", printable_message(message)));
  return exit_code;
}

int print_help(const std::string& text) {
  StdoutText output;
  output.write(text);
  return output.finish(kExitOk);
}

struct Entry {
  std::unique_ptr<Command> command;
  CLI::App* app = nullptr;
};

std::vector<Entry> add_commands(CLI::App& program) {
  std::vector<Entry> entries;
  for (auto* make : {make_run_command, make_plan_command, make_inspect_command,
                     make_tokenize_command, make_bench_command, make_sweep_command}) {
    Entry entry{make()};
    entry.app = entry.command->add_to(program);
    const std::string own = entry.app->get_footer();
    entry.app->footer(own.empty() ? kExitCodes : own + "\n" + kExitCodes);
    entries.push_back(std::move(entry));
  }
  return entries;
}

// Nothing if parsing succeeded; else the exit code, with the reason or the help printed.
std::optional<int> parse(CLI::App& program, const std::vector<std::string>& arguments) {
  try {
    program.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    return print_help(program.help());
  } catch (const CLI::CallForVersion& version_text) {
    return print_help(std::string(version_text.what()) + "\n");
  } catch (const CLI::ExtrasError&) {
    return fail(explain_extras(program), kExitUsage);
  } catch (const CLI::ArgumentMismatch& error) {
    // The parser runs out of arguments only after the last one.
    const std::string flag = printable(arguments.back());
    const bool missing = std::string_view(error.what()).find("required") != std::string_view::npos;
    return fail((missing ? flag + ": a value is missing" : error.what()) + see_help(program),
                kExitUsage);
  } catch (const CLI::ParseError& error) {
    return fail(std::string(error.what()) + see_help(program), kExitUsage);
  }
}

int execute(Command& command) {
  const Result<int> result = command.execute();
  if (result.ok()) {
    return result.value();
  }
  return fail(result.error().message, exit_code_of(result.error().code));
}

int run_program(int argc, char** argv) {
  CLI::App program(kDescription, "tidekv");
  program.set_version_flag("--version", std::string("tidekv ") + version(),
                           "print the version and exit");
  program.get_formatter()->column_width(34);
  program.require_subcommand(0, 1);
  const std::vector<Entry> entries = add_commands(program);
  program.footer(kExitCodes);
  if (argc < 2) {
    print_message(program.help());
    return kExitUsage;
  }
  const std::vector<std::string> arguments = readable_arguments({argv + 1, argv + argc});
  if (const auto hint = hint_before_parsing(arguments)) {
    return fail(*hint, kExitUsage);
  }
  if (const auto exit_code = parse(program, arguments)) {
    return *exit_code;
  }
  for (const Entry& entry : entries) {
    if (entry.app->parsed()) {
      return execute(*entry.command);
    }
  }
  return fail("no command; expected run, plan, inspect, tokenize, bench or sweep", kExitUsage);
}

}  // namespace

int run_command_line(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", kExitOutOfMemory);
  } catch (const std::exception& error) {
    return fail(error.what(), kExitOther);
  }
}

}  // namespace tidekv::cli
