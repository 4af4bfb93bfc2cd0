// tidekv bench: speed and peak memory of prefill and generation, with llama-bench's habits. Every
// combination of the lists runs; those of one model are planned before the first of them runs.
#include "bench_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "bench_case.h"
#include "bench_list.h"
#include "bench_output.h"
#include "exit_codes.h"
#include "fidelity_command.h"
#include "flags.h"
#include "interrupt.h"
#include "list_flags.h"
#include "output.h"
#include "text_layout.h"
#include "tidekv/engine.h"

namespace tidekv::cli {
namespace {

constexpr IntegerRange kTokens{0, INT32_MAX};
constexpr IntegerRange kSomeTokens{1, INT32_MAX};

constexpr const char* kFooter =
    "Lists: 512,1K or -p 512 -p 1K; ranges 128-512, 128-512+128, 512-8K*2.\n"
    "Times are of the model alone: no tokenizing, no sampling. The peak is the ledger's, planned\n"
    "and measured alike; the process peak is the system's and counts mapped file pages too.\n"
    "tidekv bench fidelity measures drift from the full cache instead of speed.";

class BenchCommand final : public Command {
 public:
  CLI::App* add_to(CLI::App& program) override;
  Result<int> execute() override;

 private:
  // One model with one number of threads, and what runs on it.
  struct Group {
    std::string model;
    int num_threads = 0;
  };
  using Report = std::function<Status(const BenchResult&)>;

  void add_test_flags(Flags& flags);
  void add_setting_flags(Flags& flags);
  void add_output_flags(Flags& flags);
  std::vector<PrefillOptions> settings() const;
  std::vector<BenchCase> cases() const;
  double num_combinations() const;
  Status check() const;
  Status run_group(const Group& group, const std::vector<BenchCase>& cases, const Report& report);
  void say_progress(const std::string& what) const;
  Result<int> run_all(const std::vector<BenchCase>& cases, StdoutText& out);

  std::unique_ptr<Command> fidelity_ = make_fidelity_command();
  CLI::App* fidelity_app_ = nullptr;
  List<std::string> models_;
  Numbers prompts_{{512}};
  Numbers generated_{{128}};
  List<std::pair<std::int64_t, std::int64_t>> pairs_;
  Numbers depths_{{0}};
  Numbers threads_{{default_num_threads()}};
  List<std::string> methods_{{PrefillOptions{}.method}};
  Numbers budgets_{{PrefillOptions{}.budget}};
  Numbers chunks_{{0}};  // 0: auto
  List<ComputeType> types_{{ComputeType::kAuto}};
  BenchSampling sampling_;
  bool no_warm_up_ = false;
  bool progress_ = false;
  std::int64_t delay_seconds_ = 0;
  BenchFormat format_ = BenchFormat::kMarkdown;
  BenchFormat error_format_ = BenchFormat::kNone;
  std::size_t num_started_ = 0;
  std::size_t num_all_ = 0;
};

void BenchCommand::add_test_flags(Flags& flags) {
  flags.group("Tests");
  add_numbers(flags, {"-p,--n-prompt", "LIST", "tokens of a prompt to time; 0: no such test"},
              prompts_, kTokens);
  add_numbers(flags, {"-n,--n-gen", "LIST", "tokens to generate and time; 0: no such test"},
              generated_, kTokens);
  flags.repeated({"--pg", "PP,TG", "a prompt and what follows it, timed together; also -pg"}, "",
                 [this](const std::string& text) -> Status {
                   TIDEKV_ASSIGN(const auto pair, parse_number_pair(text, kSomeTokens));
                   pairs_.add({pair});
                   return Ok{};
                 });
  add_numbers(flags, {"-d,--n-depth", "LIST", "prompt tokens before those generated, not timed"},
              depths_, kTokens);
  flags.integer({"-r,--repetitions", "N", "timed runs of each test"}, sampling_.repetitions,
                {1, 10000});
  flags.on_off("--no-warmup", no_warm_up_, "do not run each test once before its timed runs");
  flags.integer({"--delay", "SECONDS", "rest before each test"}, delay_seconds_, {0, 86400});
}

void BenchCommand::add_setting_flags(Flags& flags) {
  flags.group("Settings");
  flags.repeated({"-m,--model", "PATH,...", "GGUF files or Hugging Face folders"}, "",
                 [this](const std::string& text) -> Status {
                   for (const std::string_view path : split_at_commas(text)) {
                     models_.add({std::string(path)});
                   }
                   return Ok{};
                 });
  flags.repeated({"-t,--threads", "LIST", "threads; each holds its own kernel scratch"}, "all CPUs",
                 [this](const std::string& text) -> Status {
                   TIDEKV_ASSIGN(const auto numbers, parse_number_list(text, {1, 1024}));
                   threads_.add(numbers);
                   return Ok{};
                 });
  add_methods(flags, methods_);
  add_numbers(flags, {"--budget", "LIST", "tokens kept per layer and KV head"}, budgets_,
              kSomeTokens);
  flags.repeated({"--chunk", "LIST|auto", "prompt tokens run at once"}, "auto",
                 [this](const std::string& text) -> Status {
                   if (text == "auto") {
                     chunks_.add({0});
                     return Ok{};
                   }
                   TIDEKV_ASSIGN(const auto numbers, parse_number_list(text, kSomeTokens));
                   chunks_.add(numbers);
                   return Ok{};
                 });
  add_words<ComputeType>(
      flags, {"--dtype", "LIST", "type of activations and cache: auto, bf16, f32"}, "auto", types_,
      {{"auto", ComputeType::kAuto}, {"bf16", ComputeType::kBF16}, {"f32", ComputeType::kF32}});
}

void BenchCommand::add_output_flags(Flags& flags) {
  flags.group("Output");
  const std::vector<std::pair<std::string, BenchFormat>> formats = {
      {"md", BenchFormat::kMarkdown},
      {"csv", BenchFormat::kCsv},
      {"json", BenchFormat::kJson},
      {"jsonl", BenchFormat::kJsonLines}};
  flags.choice({"-o,--output", "md|csv|json|jsonl", "form of the results"}, format_, formats);
  auto with_none = formats;
  with_none.emplace_back("none", BenchFormat::kNone);
  flags.choice(
      {"--output-err", "md|csv|json|jsonl|none", "the same once more, to stderr; also -oe"},
      error_format_, with_none);
  flags.on_off("--progress", progress_, "say what runs, to stderr");
}

CLI::App* BenchCommand::add_to(CLI::App& program) {
  CLI::App* app = program.add_subcommand("bench", "speed and peak memory, as llama-bench does it");
  app->footer(kFooter);
  Flags flags(*app);
  add_test_flags(flags);
  add_setting_flags(flags);
  add_output_flags(flags);
  fidelity_app_ = fidelity_->add_to(*app);
  return app;
}

// Method, budget, chunk and type in every combination. What keeps everything has no budget.
std::vector<PrefillOptions> BenchCommand::settings() const {
  std::vector<PrefillOptions> all;
  for (const std::string& method : methods_.values) {
    for (std::size_t b = 0; b < (keeps_everything(method) ? 1 : budgets_.values.size()); ++b) {
      for (const std::int64_t chunk_len : chunks_.values) {
        for (const ComputeType type : types_.values) {
          PrefillOptions options;
          options.method = method;
          options.budget = budgets_.values[b];
          options.window_len = std::min(options.window_len, options.budget);
          options.chunk_len = chunk_len;
          options.compute_type = type;
          all.push_back(options);
        }
      }
    }
  }
  return all;
}

std::vector<BenchCase> BenchCommand::cases() const {
  std::vector<BenchCase> all;
  const auto add = [&](std::int64_t num_prompt, std::int64_t num_generated, std::int64_t depth,
                       const PrefillOptions& options) {
    // A prompt is always prefilled whole, layer by layer: none goes on from a depth.
    const bool possible = num_prompt == 0 || depth == 0;
    if (num_prompt + num_generated > 0 && possible) {
      all.push_back({num_prompt, num_generated, depth, options});
    }
  };
  for (const PrefillOptions& options : settings()) {
    for (const std::int64_t depth : depths_.values) {
      for (const std::int64_t num_prompt : prompts_.values) {
        add(num_prompt, 0, depth, options);
      }
      for (const std::int64_t num_generated : generated_.values) {
        add(0, num_generated, depth, options);
      }
      for (const auto& [num_prompt, num_generated] : pairs_.values) {
        add(num_prompt, num_generated, depth, options);
      }
    }
  }
  return all;
}

// Before they are made: lists multiply. A double cannot overflow.
double BenchCommand::num_combinations() const {
  double count =
      static_cast<double>(prompts_.values.size() + generated_.values.size() + pairs_.values.size());
  for (const std::size_t size :
       {models_.values.size(), threads_.values.size(), methods_.values.size(),
        budgets_.values.size(), chunks_.values.size(), types_.values.size(),
        depths_.values.size()}) {
    count *= static_cast<double>(size);
  }
  return count;
}

Status BenchCommand::check() const {
  constexpr double kMaxCombinations = 10000;
  if (models_.values.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "no model; give a GGUF file or a Hugging Face folder with -m PATH"};
  }
  if (num_combinations() > kMaxCombinations) {
    return Error{ErrorCode::kInvalidArgument,
                 "the lists multiply to more than 10,000 tests; give shorter ones"};
  }
  if (cases().empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "nothing to run: -p and -n are 0, or -p is at a depth; give -n N or -pg PP,TG"};
  }
  return Ok{};
}

void BenchCommand::say_progress(const std::string& what) const {
  if (progress_) {
    print_message(fmt::format("tidekv bench: test {}/{}: {}\n", num_started_, num_all_, what));
  }
}

Status BenchCommand::run_group(const Group& group, const std::vector<BenchCase>& cases,
                               const Report& report) {
  TIDEKV_ASSIGN(const Engine engine, Engine::load(group.model, {.num_threads = group.num_threads}));
  for (const BenchCase& benchmarked : cases) {
    TIDEKV_TRY(plan_case(engine, benchmarked));
  }
  BenchSampling sampling = sampling_;
  sampling.warm_up = !no_warm_up_;
  for (const BenchCase& benchmarked : cases) {
    num_started_ += 1;
    say_progress(fmt::format("{} {}", benchmarked.prefill.method, benchmarked.name()));
    for (std::int64_t rest = 10 * delay_seconds_; rest > 0 && !interrupted(); --rest) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    TIDEKV_ASSIGN(BenchResult result, run_case(engine, benchmarked, sampling));
    result.model = engine.model();
    result.num_threads = group.num_threads;
    TIDEKV_TRY(report(result));
  }
  return Ok{};
}

Result<int> BenchCommand::run_all(const std::vector<BenchCase>& cases, StdoutText& out) {
  const BenchVariation varied{.budget = budgets_.values.size() > 1,
                              .chunk = chunks_.values.size() > 1,
                              .dtype = types_.values.size() > 1};
  const auto printed = make_bench_output(format_, varied);
  const auto to_stderr = make_bench_output(error_format_, varied);
  const auto write = [&](const auto& text_of) {
    out.write(text_of(*printed));
    if (to_stderr) {
      print_message(text_of(*to_stderr));
    }
  };
  catch_interrupts();
  write([](BenchOutput& output) { return output.head(); });
  num_all_ = models_.values.size() * threads_.values.size() * cases.size();
  Status status = Ok{};
  for (const std::string& model : models_.values) {
    for (const std::int64_t num_threads : threads_.values) {
      if (status.ok()) {
        status = run_group({model, static_cast<int>(num_threads)}, cases,
                           [&](const BenchResult& result) -> Status {
                             write([&](BenchOutput& output) { return output.row(result); });
                             if (out.failed()) {  // nobody reads any more
                               return Error{ErrorCode::kCancelled, "stdout"};
                             }
                             return Ok{};
                           });
      }
    }
  }
  write([](BenchOutput& output) { return output.foot(); });
  if (!status.ok() && !out.failed()) {
    return std::move(status).error();
  }
  return out.finish(kExitOk);
}

Result<int> BenchCommand::execute() {
  if (fidelity_app_->parsed()) {
    return fidelity_->execute();
  }
  TIDEKV_TRY(check());
  const bool at_depth = std::any_of(depths_.values.begin(), depths_.values.end(),
                                    [](std::int64_t depth) { return depth > 0; });
  const bool prompts =
      !pairs_.values.empty() || std::any_of(prompts_.values.begin(), prompts_.values.end(),
                                            [](std::int64_t len) { return len > 0; });
  if (at_depth && prompts) {
    print_message(
        "tidekv: note: -d is for generated tokens; a prompt is prefilled whole and has no depth\n");
  }
  StdoutText out;
  return run_all(cases(), out);
}

}  // namespace

std::unique_ptr<Command> make_bench_command() { return std::make_unique<BenchCommand>(); }

}  // namespace tidekv::cli
