// needle_eval: how many prompts each method and budget answers, with intervals.
//
// The first answer token comes from the prefill with full attention; the digits are found by decode
// in what the cache kept, so the share of right answers measures the cache.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "needle_task.h"
#include "tidekv/engine.h"

namespace {

using tidekv::Status;

struct Options {
  std::string model = "models/needle";
  std::vector<std::string> tasks = {"single:8192", "multikey:8192", "needles:2048"};
  std::vector<std::string> methods = {"full", "tidekv-snap"};
  std::vector<std::int64_t> budgets = {64, 128, 256, 1024};
  std::int64_t count = 50;
  std::uint64_t first_seed = 1;
  int threads = 0;
};

struct TaskSpec {
  std::string name;
  tidekv::needle::Task task;
  std::int64_t tokens;
};

tidekv::Result<TaskSpec> parse_task(const std::string& text) {
  const std::size_t colon = text.find(':');
  TaskSpec spec{.name = text, .task = {}, .tokens = 8192};
  TIDEKV_ASSIGN(spec.task, tidekv::needle::task_named(text.substr(0, colon)));
  if (colon != std::string::npos) {
    char* end = nullptr;
    spec.tokens = std::strtoll(text.c_str() + colon + 1, &end, 10);
    if (*end != '\0' || spec.tokens < 64) {
      return tidekv::Error{tidekv::ErrorCode::kInvalidArgument,
                           "--tasks '" + text + "': expected TASK:TOKENS"};
    }
  }
  return spec;
}

// Wilson's 95 % interval of a share, in percent.
struct Interval {
  double low;
  double high;
};

Interval wilson(std::int64_t right, std::int64_t count) {
  constexpr double kZ = 1.959964;
  const auto n = static_cast<double>(count);
  const double share = static_cast<double>(right) / n;
  const double centre = share + kZ * kZ / (2 * n);
  const double spread = kZ * std::sqrt(share * (1 - share) / n + kZ * kZ / (4 * n * n));
  const double scale = 100 / (1 + kZ * kZ / n);
  return {std::max(0.0, (centre - spread) * scale), std::min(100.0, (centre + spread) * scale)};
}

class Evaluation {
 public:
  Evaluation(const Options& options, const tidekv::Engine& engine)
      : options_(&options), engine_(&engine) {}

  Status run() {
    TIDEKV_ASSIGN(const tidekv::needle::Words words, tidekv::needle::read_words(options_->model));
    std::puts("| task, tokens | method | budget | right | of | share | 95 % interval |");
    std::puts("|---|---|---|---|---|---|---|");
    for (const std::string& text : options_->tasks) {
      TIDEKV_ASSIGN(const TaskSpec task, parse_task(text));
      TIDEKV_ASSIGN(const std::vector<tidekv::needle::Prompt> prompts, make_prompts(task, words));
      for (const std::string& method : options_->methods) {
        if (method == "full") {
          TIDEKV_TRY(run_row(task, method, 0, prompts));
          continue;
        }
        for (const std::int64_t budget : options_->budgets) {
          TIDEKV_TRY(run_row(task, method, budget, prompts));
        }
      }
    }
    return tidekv::Ok{};
  }

 private:
  tidekv::Result<std::vector<tidekv::needle::Prompt>> make_prompts(
      const TaskSpec& task, const tidekv::needle::Words& words) const {
    const auto count_tokens = [&](std::string_view text) {
      const auto ids = engine_->tokenize(text, {.add_bos = false});
      return ids.ok() ? static_cast<std::int64_t>(ids.value().size()) : 0;
    };
    std::vector<tidekv::needle::Prompt> prompts;
    for (std::int64_t index = 0; index < options_->count; ++index) {
      const std::uint64_t seed = options_->first_seed + static_cast<std::uint64_t>(index);
      TIDEKV_ASSIGN(tidekv::needle::Prompt prompt,
                    tidekv::needle::make_prompt(task.task, task.tokens, seed, words, count_tokens));
      prompts.push_back(std::move(prompt));
    }
    return prompts;
  }

  Status run_row(const TaskSpec& task, const std::string& method, std::int64_t budget,
                 const std::vector<tidekv::needle::Prompt>& prompts) const {
    std::int64_t right = 0;
    for (std::size_t index = 0; index < prompts.size(); ++index) {
      fmt::print(stderr, "\r{} {} {}: {}/{}   ", task.name, method, budget, index + 1,
                 prompts.size());
      tidekv::Request request;
      TIDEKV_ASSIGN(request.prompt, engine_->tokenize(prompts[index].text, {}));
      request.prefill.method = method;
      request.prefill.max_new_tokens = 12;
      request.sampling.temperature = 0;
      if (budget > 0) {
        request.prefill.budget = budget;
      }
      TIDEKV_ASSIGN(const tidekv::RunReport report, engine_->generate(request, {}));
      right += tidekv::needle::is_right(report.text, prompts[index].answer) ? 1 : 0;
    }
    fmt::print(stderr, "\r{:60}\r", "");
    const auto count = static_cast<std::int64_t>(prompts.size());
    const Interval interval = wilson(right, count);
    fmt::print("| {}, {} | {} | {} | {} | {} | {:.0f} % | {:.0f} - {:.0f} % |\n",
               task.name.substr(0, task.name.find(':')), task.tokens, method,
               budget > 0 ? std::to_string(budget) : "all", right, count,
               100.0 * static_cast<double>(right) / static_cast<double>(count), interval.low,
               interval.high);
    std::fflush(stdout);
    return tidekv::Ok{};
  }

  const Options* options_;
  const tidekv::Engine* engine_;
};

Status run(const Options& options) {
  TIDEKV_ASSIGN(const tidekv::Engine engine,
                tidekv::Engine::load(options.model, {.num_threads = options.threads}));
  return Evaluation(options, engine).run();
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Share of needle prompts answered right, by method and budget, as Markdown.");
  app.add_option("-m,--model", options.model, "model folder with word lists")
      ->capture_default_str();
  app.add_option("--tasks", options.tasks, "TASK:TOKENS, comma-separated")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--methods", options.methods, "comma-separated")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--budgets", options.budgets, "tokens per layer, comma-separated")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("-n", options.count, "prompts per row")
      ->capture_default_str()
      ->check(CLI::Range(1, 100000));
  app.add_option("--seed", options.first_seed, "seeds seed .. seed + n - 1")->capture_default_str();
  app.add_option("-t,--threads", options.threads, "0: all CPUs")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const Status status = run(options);
  if (!status.ok()) {
    fmt::print(stderr, "needle_eval: {}\n", status.error().message);
    return 1;
  }
  return 0;
}
