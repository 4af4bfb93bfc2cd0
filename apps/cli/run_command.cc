// tidekv run: prefill a prompt within its plan, generate, report.
#include "run_command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "exit_codes.h"
#include "interrupt.h"
#include "output.h"
#include "progress.h"
#include "prompt.h"
#include "report_text.h"
#include "request_flags.h"
#include "text_layout.h"
#include "tidekv/engine.h"

namespace tidekv::cli {
namespace {

class RunCommand final : public Command {
 public:
  CLI::App* add_to(CLI::App& program) override;
  Result<int> execute() override;

 private:
  Result<Request> make_request(const Engine& engine, const std::string& text) const;
  void note_plain_specials(const Engine& engine, const std::string& text,
                           std::size_t num_tokens) const;
  void say_what_runs(const Engine& engine, const Request& request) const;
  Result<RunReport> generate(const Engine& engine, const Request& request, StdoutText& text) const;
  Status write_reports(const RunReport& report, OutputFiles& files) const;

  ModelFlags model_;
  PromptFlags prompt_;
  PrefillOptions prefill_;
  SamplingFlags sampling_;
  ReportFlags report_;
  bool digests_ = false;
  bool verbose_ = false;
};

CLI::App* RunCommand::add_to(CLI::App& program) {
  CLI::App* app = program.add_subcommand("run", "answer a prompt within a planned memory peak");
  Flags flags(*app);
  flags.group("Model");
  add_model_flags(flags, model_);
  add_threads_flag(flags, model_);
  add_prompt_flags(flags, prompt_);
  flags.group("Cache");
  std::vector<std::pair<std::string, std::string>> methods;
  for (const std::string& name : method_names()) {
    methods.emplace_back(name, name);
  }
  flags.choice<std::string>({"--method", "NAME", "what is kept"}, prefill_.method, methods);
  add_budget_flag(flags, prefill_);
  add_prefill_flags(flags, prefill_);
  flags.group("Sampling");
  add_sampling_flags(flags, sampling_);
  add_report_flags(flags, report_);
  flags.on_off("--digest", digests_, "digests of hidden states, kept positions and cache");
  flags.on_off("-v,--verbose", verbose_, "say what will run before it does");
  return app;
}

Result<Request> RunCommand::make_request(const Engine& engine, const std::string& text) const {
  Request request;
  TIDEKV_ASSIGN(request.prompt, tokenize_prompt(engine, prompt_, text));
  note_plain_specials(engine, text, request.prompt.size());
  request.prefill = prefill_;
  request.sampling = sampling_.options;
  request.ignore_eos = sampling_.ignore_eos;
  request.digests = digests_;
  request.timeline = report_.timeline_file.has_value();
  return request;
}

// A chat template given as text without --parse-special would fail silently; a document that
// merely mentions such tokens is right without it. So say it, and change nothing.
void RunCommand::note_plain_specials(const Engine& engine, const std::string& text,
                                     std::size_t num_tokens) const {
  if (prompt_.chat || prompt_.parse_special || prompt_.tokens ||
      text.find("<|") == std::string::npos) {
    return;
  }
  const auto other = engine.tokenize(text, {.add_bos = !prompt_.no_bos, .parse_special = true});
  if (other.ok() && other.value().size() != num_tokens) {
    print_message(
        fmt::format("tidekv: note: the prompt spells special tokens; they are read as plain text "
                    "(--parse-special reads them as tokens)\n"));
  }
}

void RunCommand::say_what_runs(const Engine& engine, const Request& request) const {
  const ModelInfo& model = engine.model();
  const auto prompt_len = static_cast<std::int64_t>(request.prompt.size());
  print_message(fmt::format("model {}: {} parameters, {}, kernels {}\n", printable(model.path),
                            grouped(model.num_parameters), model.weights_type, model.backend));
  if (const auto plan = engine.plan(request.prefill, prompt_len); plan.ok()) {
    const PlanReport& report = plan.value();
    print_message(
        fmt::format("plan: {} prompt tokens + at most {}, method {}, chunk {}, device peak {}\n",
                    grouped(prompt_len), grouped(report.max_new_tokens), report.method,
                    grouped(report.chunk_len), bytes_and_units(report.memory.peak_bytes)));
  }
}

Result<RunReport> RunCommand::generate(const Engine& engine, const Request& request,
                                       StdoutText& text) const {
  ProgressLine progress(::isatty(STDERR_FILENO) == 1);
  Callbacks callbacks;
  callbacks.on_progress = [&](const Progress& now) { progress.update(now); };
  callbacks.on_prefill_done = [&](const std::vector<LayerRetention>& layers) {
    progress.finish();
    print_message(fmt::format("{}\n", kept_text(layers, request.prefill)));
  };
  callbacks.on_text = [&](std::string_view piece) {
    if (!text.write(piece)) {
      request_stop();
    }
  };
  callbacks.cancel = stop_flag();
  Result<RunReport> report = engine.generate(request, callbacks);
  progress.finish();
  if (::isatty(STDOUT_FILENO) == 1 && text.last() != 0 && text.last() != '\n') {
    text.write("\n");  // so that the shell's prompt starts a line; a file gets the text alone
  }
  return report;
}

Status RunCommand::write_reports(const RunReport& report, OutputFiles& files) const {
  const std::string text = report_.json() ? to_json(report) + "\n" : run_text(report);
  if (files.first) {
    TIDEKV_TRY(files.first->write(text));
  } else {
    print_message(fmt::format("{}{}", report_.json() ? "" : "\n", text));
  }
  if (files.second) {
    std::string csv;
    append_timeline(csv, report.plan.method, report.timeline);
    TIDEKV_TRY(files.second->write(csv));
  }
  return Ok{};
}

Result<int> RunCommand::execute() {
  TIDEKV_TRY(check_report_paths(report_, model_, prompt_));
  TIDEKV_TRY(check_model_flags(model_));
  TIDEKV_TRY(check_prompt_flags(prompt_));
  TIDEKV_ASSIGN(const Engine engine, load_engine(model_));
  const PromptLimit limit = limit_of_context(engine.model(), prefill_);
  TIDEKV_ASSIGN(const std::string text, read_prompt(prompt_, limit));
  TIDEKV_ASSIGN(const Request request, make_request(engine, text));
  if (verbose_) {
    say_what_runs(engine, request);
  }
  catch_interrupts();  // before there is a file: a killed run leaves no empty report
  TIDEKV_ASSIGN(OutputFiles reports, open_reports(report_));
  StdoutText output;
  Result<RunReport> report = generate(engine, request, output);
  if (!report.ok()) {
    return output.failed() ? output.finish(kExitOther) : Result<int>(std::move(report).error());
  }
  TIDEKV_TRY(write_reports(report.value(), reports));
  return output.finish(interrupted() ? kExitInterrupted : kExitOk);
}

}  // namespace

std::unique_ptr<Command> make_run_command() { return std::make_unique<RunCommand>(); }

}  // namespace tidekv::cli
