// tidekv bench fidelity: how far each method's hidden states and next tokens are from the full
// cache's: the paper's Table 8, Fig. 6 and Eq. (3). All prompts are read and planned before the
// first one runs, and nothing is written before all have.
#include "fidelity_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench_case.h"
#include "exit_codes.h"
#include "fidelity_output.h"
#include "fidelity_plot.h"
#include "fidelity_results.h"
#include "interrupt.h"
#include "list_flags.h"
#include "output.h"
#include "progress.h"
#include "request_flags.h"
#include "sweep_prompts.h"
#include "targets.h"
#include "text_layout.h"
#include "tidekv/engine.h"

namespace tidekv::cli {
namespace {

constexpr const char* kFooter =
    "Every method's prefill is compared, row by row after every layer, with that of the full "
    "cache,\n"
    "whose rows are kept in host memory (layers x tokens x hidden size; counted by "
    "--memory-limit).\n"
    "Methods that cut a layer when it has seen the prompt (tidekv-*) share one prefill a prompt;\n"
    "every other method and budget runs its own. FILE is as `tidekv sweep` reads it.\n"
    "Exit codes are those of tidekv bench.";

constexpr std::int64_t kMaxTokens = INT32_MAX;

// What the paper's Table 8 compares, every delayed method, and KeyDiff.
std::vector<std::string> default_methods() {
  std::vector<std::string> methods = {"full-chunked", "tide-noevict"};
  for (const std::string& name : method_names()) {
    if (name.starts_with("tidekv-")) {
      methods.push_back(name);
    }
  }
  methods.insert(methods.end(), {"block-snap", "block-recent", "keydiff"});
  return methods;
}

// Bytes of the machine's memory: more of it cannot be had, whatever the system promises.
std::int64_t physical_memory_bytes() {
  const std::int64_t pages = ::sysconf(_SC_PHYS_PAGES);
  const std::int64_t page_bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? pages * page_bytes : 0;
}

// In the order given.
template <typename Value>
std::vector<Value> each_once(const std::vector<Value>& values) {
  std::vector<Value> unique;
  for (const Value& value : values) {
    if (std::find(unique.begin(), unique.end(), value) == unique.end()) {
      unique.push_back(value);
    }
  }
  return unique;
}

class FidelityCommand final : public Command {
 public:
  CLI::App* add_to(CLI::App& bench) override;
  Result<int> execute() override;

 private:
  void add_setting_flags(Flags& flags);
  void add_output_flags(Flags& flags);
  Status check() const;
  std::vector<SweepTarget> targets() const;
  Result<std::vector<SweepPrompt>> read_prompts(const Engine& engine) const;
  FidelityRequest request_for(const SweepPrompt& prompt) const;
  Status check_plans(const Engine& engine, const std::vector<SweepPrompt>& prompts) const;
  void say(const std::string& what, ProgressLine& progress) const;
  Result<FidelityReport> run_prompt(const Engine& engine, const SweepPrompt& prompt,
                                    const std::string& number, ProgressLine& progress) const;
  Result<FidelityResults> run_all(const Engine& engine,
                                  const std::vector<SweepPrompt>& prompts) const;

  ModelFlags model_;
  std::optional<std::string> file_;
  std::int64_t random_len_ = kNotGiven;
  std::int64_t num_prompts_ = 20;
  List<std::string> methods_{default_methods()};
  Numbers budgets_{{1024}};
  PrefillOptions prefill_;
  std::int64_t num_next_ = FidelityRequest{}.num_next;
  FidelityFormat format_ = FidelityFormat::kMarkdown;
  std::optional<std::string> report_file_;
  std::optional<std::string> svg_;
  std::chrono::steady_clock::time_point start_;
};

void FidelityCommand::add_setting_flags(Flags& flags) {
  flags.group("Model");
  add_model_flags(flags, model_);
  add_threads_flag(flags, model_);
  flags.group("Prompts");
  flags.text({"-f,--file", "FILE", "prompts, one JSON object a line (-: stdin)"}, file_);
  flags.tokens({"-p,--n-prompt", "N", "or prompts of N random token ids"}, random_len_,
               {1, kMaxTokens});
  flags.integer({"--prompts", "N", "at most so many of them"}, num_prompts_, {1, 100000});
  flags.group("Methods");
  add_methods(flags, methods_);
  add_numbers(flags, {"--budget", "LIST", "tokens kept per layer and KV head; tables: the first"},
              budgets_, {1, kMaxTokens});
  prefill_.chunk_len = FidelityRequest::kDefaultChunkLen;
  flags.tokens({"-C,--chunk", "N", "prompt tokens run at once, by every method"},
               prefill_.chunk_len, {1, kMaxTokens});
  flags.tokens({"--window", "W", "last tokens: they say what matters, and are always kept"},
               prefill_.window_len, {1, kMaxTokens});
  flags.choice<ComputeType>(
      {"--dtype", "auto|bf16|f32", "type of activations and cache"}, prefill_.compute_type,
      {{"auto", ComputeType::kAuto}, {"bf16", ComputeType::kBF16}, {"f32", ComputeType::kF32}});
  flags.tokens({"--next", "N", "tokens of the full cache's continuation, for KL"}, num_next_,
               {1, kMaxTokens});
  flags.tokens({"-c,--ctx-size", "N", "cap on prompt + continuation; 0: the model's own"},
               prefill_.context_len, {0, kMaxTokens});
  flags.on_off("--beyond-context", prefill_.beyond_context,
               "let -c exceed the model's context: it never saw such positions");
  prefill_.memory_limit_bytes = physical_memory_bytes();
  flags.add({"--memory-limit", "SIZE", "refuse what needs more, weights and kept rows included"},
            "the machine's", [this](const std::string& text) -> Status {
              TIDEKV_ASSIGN(prefill_.memory_limit_bytes, parse_bytes(text));
              return Ok{};
            });
}

void FidelityCommand::add_output_flags(Flags& flags) {
  flags.group("Output");
  flags.choice<FidelityFormat>(
      {"-o,--output", "md|json", "form of the results"}, format_,
      {{"md", FidelityFormat::kMarkdown}, {"json", FidelityFormat::kJson}});
  flags.text({"--report-file", "FILE", "everything, also by layer and chunk, as JSON"},
             report_file_);
  flags.text({"--svg", "FILE", "drift by chunk and by budget, plotted"}, svg_);
}

CLI::App* FidelityCommand::add_to(CLI::App& bench) {
  CLI::App* app = bench.add_subcommand(
      "fidelity", "drift of hidden states and next tokens from the full cache's");
  app->footer(kFooter);
  Flags flags(*app);
  add_setting_flags(flags);
  add_output_flags(flags);
  return app;
}

Status FidelityCommand::check() const {
  TIDEKV_TRY(check_model_flags(model_));
  const auto refuse = [](const char* message) {
    return Error{ErrorCode::kInvalidArgument, message};
  };
  const bool random = random_len_ != kNotGiven;
  if (file_ && random) {
    return refuse("-f and -p: expected one of them, a file of prompts or random token ids");
  }
  if (!file_ && !random) {
    return refuse(
        "no prompts; give a file with one JSON object a line with -f FILE, or random token ids "
        "with -p N");
  }
  if (file_ && file_->empty()) {
    return refuse("-f: the path is empty; expected a file, or - for stdin");
  }
  std::vector<std::string> inputs = {*model_.path};
  if (file_) {
    inputs.push_back(*file_);
  }
  TIDEKV_TRY(check_not_an_input("--report-file", report_file_, inputs));
  return check_not_an_input("--svg", svg_, inputs);
}

// Repeated ones once.
std::vector<SweepTarget> FidelityCommand::targets() const {
  return crossed(each_once(methods_.values), each_once(budgets_.values));
}

Result<std::vector<SweepPrompt>> FidelityCommand::read_prompts(const Engine& engine) const {
  if (file_) {
    TIDEKV_ASSIGN(std::vector<SweepPrompt> prompts, read_sweep_prompts(engine, *file_));
    prompts.resize(std::min(prompts.size(), static_cast<std::size_t>(num_prompts_)));
    return prompts;
  }
  const std::int64_t most = std::max(engine.model().max_positions, prefill_.context_len);
  if (random_len_ > most) {  // before so many ids are made
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("-p {}: the context holds {} tokens; expected at most that",
                             random_len_, most)};
  }
  std::vector<SweepPrompt> prompts;
  for (std::int64_t number = 1; number <= num_prompts_; ++number) {
    const auto seed = static_cast<std::uint64_t>(number);
    prompts.push_back({fmt::format("random prompt {}", number),
                       std::to_string(number),
                       random_prompt(engine.model(), random_len_, seed),
                       {}});
  }
  return prompts;
}

FidelityRequest FidelityCommand::request_for(const SweepPrompt& prompt) const {
  FidelityRequest request;
  request.prompt = prompt.tokens;
  request.prefill = prefill_;
  request.targets = targets();
  request.num_next = num_next_;
  return request;
}

Status FidelityCommand::check_plans(const Engine& engine,
                                    const std::vector<SweepPrompt>& prompts) const {
  std::set<std::size_t> planned;  // lengths: nothing else of a prompt changes its plan
  for (const SweepPrompt& prompt : prompts) {
    if (!planned.insert(prompt.tokens.size()).second) {
      continue;
    }
    const Result<std::int64_t> bytes = engine.plan_fidelity(request_for(prompt));
    if (!bytes.ok()) {
      return Error{bytes.error().code, prompt.where + ": " + bytes.error().message};
    }
  }
  return Ok{};
}

void FidelityCommand::say(const std::string& what, ProgressLine& progress) const {
  const auto elapsed = std::chrono::steady_clock::now() - start_;
  progress.show(std::chrono::duration<double>(elapsed).count(), what);
}

Result<FidelityReport> FidelityCommand::run_prompt(const Engine& engine, const SweepPrompt& prompt,
                                                   const std::string& number,
                                                   ProgressLine& progress) const {
  std::string run;
  Callbacks callbacks;
  callbacks.on_run = [&](std::size_t index, std::size_t count, const std::string& method) {
    run = fmt::format("{}, run {} of {} ({}), ", number, index + 1, count, method);
  };
  callbacks.on_progress = [&](const Progress& now) { say(run + progress_text(now), progress); };
  callbacks.on_cache = [&](std::size_t index, std::size_t count) {
    say(fmt::format("{}continuation: cache {} of {}", run, index + 1, count), progress);
  };
  callbacks.cancel = stop_flag();
  Result<FidelityReport> report = engine.fidelity(request_for(prompt), callbacks);
  progress.finish();
  if (!report.ok()) {
    return Error{report.error().code, prompt.where + ": " + report.error().message};
  }
  return report;
}

Result<FidelityResults> FidelityCommand::run_all(const Engine& engine,
                                                 const std::vector<SweepPrompt>& prompts) const {
  ProgressLine progress(::isatty(STDERR_FILENO) == 1);
  FidelityResults results;
  results.model = engine.model().path;
  results.backend = engine.model().backend;
  results.targets = targets();
  results.budgets = each_once(budgets_.values);
  for (const SweepPrompt& prompt : prompts) {
    const std::string number =
        fmt::format("prompt {} of {}", results.prompts.size() + 1, prompts.size());
    TIDEKV_ASSIGN(FidelityReport report, run_prompt(engine, prompt, number, progress));
    results.prompts.push_back({prompt.id, std::move(report)});
  }
  return results;
}

Result<int> FidelityCommand::execute() {
  TIDEKV_TRY(check());
  TIDEKV_ASSIGN(const Engine engine, load_engine(model_));
  TIDEKV_ASSIGN(const std::vector<SweepPrompt> prompts, read_prompts(engine));
  TIDEKV_TRY(check_plans(engine, prompts));
  start_ = std::chrono::steady_clock::now();
  catch_interrupts();  // before there is a file: a killed run leaves no empty report
  TIDEKV_ASSIGN(OutputFiles files, open_outputs({"--report-file", report_file_}, {"--svg", svg_}));
  TIDEKV_ASSIGN(const FidelityResults results, run_all(engine, prompts));
  StdoutText out;
  out.write(fidelity_text(format_, results));
  if (files.first) {
    TIDEKV_TRY(files.first->write(fidelity_text(FidelityFormat::kJson, results)));
  }
  if (files.second) {
    TIDEKV_TRY(files.second->write(fidelity_svg(results)));
  }
  return out.finish(kExitOk);
}

}  // namespace

std::unique_ptr<Command> make_fidelity_command() { return std::make_unique<FidelityCommand>(); }

}  // namespace tidekv::cli
