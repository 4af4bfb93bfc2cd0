// tidekv plan: what a request will need, to the byte, before anything is loaded or computed.
#include "plan_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "exit_codes.h"
#include "output.h"
#include "prompt.h"
#include "report_text.h"
#include "request_flags.h"
#include "text_layout.h"
#include "tidekv/engine.h"

namespace tidekv::cli {
namespace {

constexpr const char* kFooter =
    "A run's flags plan as they stand: those that change no bytes are accepted and do nothing.\n"
    "Exits with 4 if no method asked for fits --memory-limit and --pool-limit.";

class PlanCommand final : public Command {
 public:
  CLI::App* add_to(CLI::App& program) override;
  Result<int> execute() override;

 private:
  Status check_flags() const;
  Result<int> plan_model();
  Result<int> plan_published_shape();
  using PlanOne = std::function<Result<PlanReport>(const PrefillOptions&, bool with_timeline)>;
  Result<int> report_plans(const ModelInfo& model, const PlanOne& plan_one);

  ModelFlags model_;
  std::optional<std::string> shape_;
  PromptFlags prompt_;
  std::int64_t prompt_len_ = kNotGiven;
  std::vector<std::string> methods_ = {PrefillOptions{}.method};
  PrefillOptions prefill_;
  SamplingFlags unused_sampling_;
  bool unused_digests_ = false;
  bool unused_verbose_ = false;
  ReportFlags report_;
};

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

CLI::App* PlanCommand::add_to(CLI::App& program) {
  CLI::App* app = program.add_subcommand("plan", "what a request needs, to the byte, in no time");
  app->footer(kFooter);
  Flags flags(*app);
  flags.group("Model");
  add_model_flags(flags, model_);
  const std::string shapes = "a published shape instead of a model: " + joined(shape_names());
  std::vector<std::pair<std::string, std::optional<std::string>>> named_shapes;
  for (const std::string& name : shape_names()) {
    named_shapes.emplace_back(name, name);
  }
  flags.choice({"--shape", "NAME", shapes.c_str()}, shape_, named_shapes);
  add_threads_flag(flags, model_);
  add_prompt_flags(flags, prompt_);
  flags.tokens({"--prompt-len", "N", "tokens of the prompt, instead of its text; 128K: 131072"},
               prompt_len_, {1, INT32_MAX});
  flags.group("Cache");
  const std::string methods = "one or several of " + joined(method_names());
  flags.list({"--method", "NAME,...", methods.c_str()}, methods_);
  add_budget_flag(flags, prefill_);
  add_prefill_flags(flags, prefill_);
  add_report_flags(flags, report_);
  flags.group("");
  add_sampling_flags(flags, unused_sampling_);
  flags.on_off("--digest", unused_digests_, "");
  flags.on_off("-v,--verbose", unused_verbose_, "");
  return app;
}

Status PlanCommand::check_flags() const {
  const auto usage = [](std::string message) {
    return Error{ErrorCode::kInvalidArgument, std::move(message)};
  };
  const std::vector<std::string> known = method_names();
  for (const std::string& method : methods_) {
    if (std::find(known.begin(), known.end(), method) == known.end()) {
      return usage(
          fmt::format("--method: '{}' is not one of {}", printable(method), joined(known)));
    }
  }
  if (shape_.has_value() == model_.path.has_value()) {
    return usage("give either -m PATH or --shape NAME");
  }
  if (shape_ && prompt_.given()) {
    return usage("a published shape has no tokenizer; give --prompt-len N instead of a prompt");
  }
  if ((prompt_len_ != kNotGiven) == prompt_.given()) {
    return usage("give the prompt once: --prompt-len N, -p TEXT, -f FILE or --tokens FILE");
  }
  return Ok{};
}

Result<int> PlanCommand::report_plans(const ModelInfo& model, const PlanOne& plan_one) {
  TIDEKV_ASSIGN(OutputFiles files, open_reports(report_));
  PrefillOptions options = prefill_;
  std::vector<PlanReport> plans;
  std::string csv;
  for (const std::string& method : methods_) {
    options.method = method;
    TIDEKV_ASSIGN(PlanReport plan, plan_one(options, files.second.has_value()));
    append_timeline(csv, method, plan.timeline);
    plans.push_back(std::move(plan));
  }

  std::string text;
  if (report_.json()) {
    for (const PlanReport& plan : plans) {
      text += (text.empty() ? "" : ",\n") + to_json(plan);
    }
    text = plans.size() > 1 ? "[" + text + "]\n" : text + "\n";
  } else {
    text = plan_text(model, plans, options);
  }
  StdoutText output;
  if (files.first) {
    TIDEKV_TRY(files.first->write(text));
  } else {
    output.write(text);
  }
  if (files.second) {
    TIDEKV_TRY(files.second->write(csv));
  }
  const bool fits =
      std::any_of(plans.begin(), plans.end(), [](const PlanReport& plan) { return plan.fits; });
  return output.finish(fits ? kExitOk : kExitDoesNotFit);
}

Result<int> PlanCommand::plan_model() {
  if (prompt_.given()) {
    TIDEKV_TRY(check_prompt_flags(prompt_));
  }
  TIDEKV_ASSIGN(const Engine engine, load_engine(model_));
  std::int64_t prompt_len = prompt_len_;
  if (prompt_.given()) {
    const PromptLimit limit = limit_of_context(engine.model(), prefill_);
    TIDEKV_ASSIGN(const std::string text, read_prompt(prompt_, limit));
    TIDEKV_ASSIGN(const auto ids, tokenize_prompt(engine, prompt_, text));
    prompt_len = static_cast<std::int64_t>(ids.size());
  }
  return report_plans(engine.model(), [&](const PrefillOptions& options, bool with_timeline) {
    return engine.plan(options, prompt_len, with_timeline);
  });
}

Result<int> PlanCommand::plan_published_shape() {
  TIDEKV_ASSIGN(ModelInfo model, shape_info(*shape_));
  model.path = *shape_;
  return report_plans(model, [&](const PrefillOptions& options, bool with_timeline) {
    return plan_shape(*shape_, model_.engine, options, prompt_len_, with_timeline);
  });
}

Result<int> PlanCommand::execute() {
  TIDEKV_TRY(check_flags());
  TIDEKV_TRY(check_report_paths(report_, model_, prompt_));
  return shape_ ? plan_published_shape() : plan_model();
}

}  // namespace

std::unique_ptr<Command> make_plan_command() { return std::make_unique<PlanCommand>(); }

}  // namespace tidekv::cli
