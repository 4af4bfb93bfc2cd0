// tidekv sweep: methods and budgets side by side on a file of prompts, each prefilled once. All
// prompts are read and planned before the first one runs.
#include "sweep_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "exit_codes.h"
#include "interrupt.h"
#include "list_flags.h"
#include "output.h"
#include "progress.h"
#include "request_flags.h"
#include "sweep_output.h"
#include "sweep_prompts.h"
#include "sweep_results.h"
#include "targets.h"
#include "text_layout.h"
#include "tidekv/engine.h"

namespace tidekv::cli {
namespace {

constexpr const char* kFooter =
    "FILE has one JSON object a line: {\"prompt\": TEXT}, {\"tokens\": [ID, ...]} or\n"
    "{\"messages\": [{\"role\": ROLE, \"content\": TEXT}, ...]}; if you like with \"id\", with\n"
    "\"prefix\" (the answer's beginning) and with \"answer\" (what a right one says).\n"
    "Methods and budgets that choose the same tokens share a cache. Methods that take each chunk\n"
    "through all layers cannot share a prefill: each has one of its own, with every budget.";

class SweepCommand final : public Command {
 public:
  CLI::App* add_to(CLI::App& program) override;
  Result<int> execute() override;

 private:
  Status check() const;
  std::vector<SweepTarget> targets() const;
  std::vector<SweepTarget> targets_of(const PrefillGroup& group) const;
  Status check_plans(const Engine& engine, const std::vector<SweepPrompt>& prompts,
                     ProgressLine& progress) const;
  void say(const std::string& what, ProgressLine& progress) const;
  Result<SweepReport> run_prefill(const Engine& engine, const SweepPrompt& prompt,
                                  const PrefillGroup& group, const std::string& what,
                                  ProgressLine& progress) const;
  Result<SweepReport> run_prompt(const Engine& engine, const SweepPrompt& prompt,
                                 const SweepResults& so_far, ProgressLine& progress) const;
  Status run_all(const Engine& engine, const std::vector<SweepPrompt>& prompts,
                 SweepResults& results, StdoutText& out, ProgressLine& progress) const;

  ModelFlags model_;
  std::optional<std::string> file_;
  List<std::string> methods_{{PrefillOptions{}.method}};
  Numbers budgets_{{PrefillOptions{}.budget}};
  PrefillOptions prefill_;
  SamplingFlags sampling_;
  SweepFormat format_ = SweepFormat::kMarkdown;
  std::optional<std::string> report_file_;
  bool digests_ = false;
  std::chrono::steady_clock::time_point start_;
};

CLI::App* SweepCommand::add_to(CLI::App& program) {
  CLI::App* app = program.add_subcommand("sweep", "methods and budgets side by side");
  app->footer(kFooter);
  Flags flags(*app);
  flags.group("Model");
  add_model_flags(flags, model_);
  add_threads_flag(flags, model_);
  flags.group("Prompts");
  flags.text({"-f,--file", "FILE", "prompts, one JSON object a line (-: stdin)"}, file_);
  flags.group("Cache");
  add_methods(flags, methods_);
  add_numbers(flags, {"--budget", "LIST", "tokens kept per layer and KV head, all included"},
              budgets_, {1, INT32_MAX});
  add_prefill_flags(flags, prefill_);
  flags.group("Sampling");
  sampling_.options.temperature = 0;
  add_sampling_flags(flags, sampling_);
  flags.group("Output");
  flags.choice<SweepFormat>({"-o,--output", "md|csv|json|jsonl", "form of the results"}, format_,
                            {{"md", SweepFormat::kMarkdown},
                             {"csv", SweepFormat::kCsv},
                             {"json", SweepFormat::kJson},
                             {"jsonl", SweepFormat::kJsonLines}});
  flags.text({"--report-file", "FILE", "everything, every answer too, as JSON"}, report_file_);
  flags.on_off("--digest", digests_, "digests of hidden states, kept positions and caches");
  return app;
}

Status SweepCommand::check() const {
  TIDEKV_TRY(check_model_flags(model_));
  if (!file_ || file_->empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 file_ ? "-f: the path is empty; expected a file, or - for stdin"
                       : "no prompts; give a file with one JSON object a line with -f FILE"};
  }
  std::vector<std::string> inputs = {*model_.path};
  inputs.push_back(*file_);
  return check_not_an_input("--report-file", report_file_, inputs);
}

std::vector<SweepTarget> SweepCommand::targets() const {
  return crossed(methods_.values, budgets_.values);
}

std::vector<SweepTarget> SweepCommand::targets_of(const PrefillGroup& group) const {
  const std::vector<SweepTarget> all = targets();
  std::vector<SweepTarget> some;
  for (const std::size_t target : group) {
    some.push_back(all[target]);
  }
  return some;
}

void SweepCommand::say(const std::string& what, ProgressLine& progress) const {
  const auto elapsed = std::chrono::steady_clock::now() - start_;
  progress.show(std::chrono::duration<double>(elapsed).count(), what);
}

Status SweepCommand::check_plans(const Engine& engine, const std::vector<SweepPrompt>& prompts,
                                 ProgressLine& progress) const {
  std::set<std::size_t> planned;  // lengths: nothing else of a prompt changes its plan
  for (const SweepPrompt& prompt : prompts) {
    if (!planned.insert(prompt.tokens.size()).second) {
      continue;
    }
    say(fmt::format("planning: {}", printable(prompt.where)), progress);
    for (const PrefillGroup& group : prefill_groups(targets())) {
      const Result<SweepPlan> plan = engine.plan_sweep(
          prefill_, targets_of(group), static_cast<std::int64_t>(prompt.tokens.size()));
      if (!plan.ok()) {
        return Error{plan.error().code, prompt.where + ": " + plan.error().message};
      }
      if (!plan.value().fits) {
        const Error error = does_not_fit(plan.value(), prefill_.memory_limit_bytes);
        return Error{error.code, prompt.where + ": " + error.message};
      }
    }
  }
  progress.finish();
  return Ok{};
}

Result<SweepReport> SweepCommand::run_prompt(const Engine& engine, const SweepPrompt& prompt,
                                             const SweepResults& so_far,
                                             ProgressLine& progress) const {
  const std::vector<PrefillGroup> groups = prefill_groups(so_far.targets);
  std::vector<SweepReport> parts;
  for (const PrefillGroup& group : groups) {
    std::string what =
        fmt::format("prompt {} of {}, ", so_far.prompts.size() + 1, so_far.num_prompts);
    if (groups.size() > 1) {
      what += fmt::format("prefill {} of {}, ", parts.size() + 1, groups.size());
    }
    TIDEKV_ASSIGN(SweepReport part, run_prefill(engine, prompt, group, what, progress));
    parts.push_back(std::move(part));
  }
  return joined(groups, std::move(parts));
}

Result<SweepReport> SweepCommand::run_prefill(const Engine& engine, const SweepPrompt& prompt,
                                              const PrefillGroup& group, const std::string& what,
                                              ProgressLine& progress) const {
  SweepRequest request;
  request.prompt = prompt.tokens;
  request.prefill = prefill_;
  request.targets = targets_of(group);
  request.sampling = sampling_.options;
  request.ignore_eos = sampling_.ignore_eos;
  request.digests = digests_;
  Callbacks callbacks;
  callbacks.on_progress = [&](const Progress& now) { say(what + progress_text(now), progress); };
  callbacks.on_cache = [&](std::size_t index, std::size_t count) {
    say(fmt::format("{}generation: cache {} of {}", what, index + 1, count), progress);
  };
  callbacks.cancel = stop_flag();
  return engine.sweep(request, callbacks);
}

Status SweepCommand::run_all(const Engine& engine, const std::vector<SweepPrompt>& prompts,
                             SweepResults& results, StdoutText& out, ProgressLine& progress) const {
  for (const SweepPrompt& prompt : prompts) {
    Result<SweepReport> report = run_prompt(engine, prompt, results, progress);
    if (!report.ok()) {
      progress.finish();
      return Error{report.error().code, prompt.where + ": " + report.error().message};
    }
    PromptResult result;
    result.id = prompt.id;
    result.scored = !prompt.answers.empty();
    result.report = std::move(report).value();
    for (const TargetReport& target : result.report.targets) {
      result.right.push_back(result.scored && says_all(target.text, prompt.answers));
    }
    results.prompts.push_back(std::move(result));
    progress.finish();
    if (!out.write(prompt_text(format_, results, results.prompts.back()))) {
      return Error{ErrorCode::kCancelled, "stdout"};  // nobody reads any more
    }
  }
  return Ok{};
}

Result<int> SweepCommand::execute() {
  TIDEKV_TRY(check());
  TIDEKV_ASSIGN(const Engine engine, load_engine(model_));
  TIDEKV_ASSIGN(const std::vector<SweepPrompt> prompts, read_sweep_prompts(engine, *file_));
  ProgressLine progress(::isatty(STDERR_FILENO) == 1);
  start_ = std::chrono::steady_clock::now();
  TIDEKV_TRY(check_plans(engine, prompts, progress));
  SweepResults results;
  results.model = engine.model().path;
  results.backend = engine.model().backend;
  results.targets = targets();
  results.num_prefills = prefill_groups(results.targets).size();
  results.num_prompts = prompts.size();
  catch_interrupts();  // before there is a file: a killed sweep leaves no empty report
  TIDEKV_ASSIGN(auto report_file, open_output("--report-file", report_file_));
  StdoutText out;
  Status status = run_all(engine, prompts, results, out, progress);
  out.write(results_text(format_, results));
  if (report_file) {
    TIDEKV_TRY(report_file->write(results_text(SweepFormat::kJson, results)));
  }
  if (!status.ok() && !out.failed()) {
    return std::move(status).error();
  }
  return out.finish(kExitOk);
}

}  // namespace

std::unique_ptr<Command> make_sweep_command() { return std::make_unique<SweepCommand>(); }

}  // namespace tidekv::cli
