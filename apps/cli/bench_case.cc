#include "bench_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <random>

#include "interrupt.h"

namespace tidekv::cli {
namespace {

// Tokens the prompt has: generation alone starts from the depth, or from one token.
std::int64_t prompt_len(const BenchCase& benchmarked) {
  return benchmarked.num_prompt > 0 ? benchmarked.num_prompt
                                    : std::max<std::int64_t>(1, benchmarked.depth);
}

// The first token comes from the prompt's logits; every other one takes a step.
std::int64_t wanted_tokens(const BenchCase& benchmarked) { return benchmarked.num_generated + 1; }

PrefillOptions options_of(const BenchCase& benchmarked) {
  PrefillOptions options = benchmarked.prefill;
  options.max_new_tokens = benchmarked.num_generated > 0 ? wanted_tokens(benchmarked) : 0;
  return options;
}

// VmHWM counts from here on, where the system lets a process forget its own.
void forget_process_peak() {
  if (std::FILE* file = std::fopen("/proc/self/clear_refs", "w")) {
    std::fputs("5", file);
    std::fclose(file);
  }
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Result<RunReport> generate(const Engine& engine, const Request& request) {
  Callbacks callbacks;
  callbacks.cancel = stop_flag();
  TIDEKV_ASSIGN(RunReport report, engine.generate(request, callbacks));
  if (report.stop_reason == "cancelled") {
    return Error{ErrorCode::kCancelled, "cancelled while generating"};
  }
  return report;
}

double timed_seconds(const BenchCase& benchmarked, const RunReport& report) {
  return (benchmarked.num_prompt > 0 ? report.prefill_seconds : 0) +
         (benchmarked.num_generated > 0 ? report.decode_steps_seconds : 0);
}

}  // namespace

std::vector<std::int32_t> random_prompt(const ModelInfo& model, std::int64_t len,
                                        std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> ids;
  ids.reserve(static_cast<std::size_t>(len));
  for (std::int64_t i = 0; i < len; ++i) {
    const bool starts = i == 0 && model.bos_token_id >= 0;
    ids.push_back(starts ? model.bos_token_id
                         : static_cast<std::int32_t>(random() %
                                                     static_cast<std::uint64_t>(model.vocab_size)));
  }
  return ids;
}

std::string BenchCase::name() const {
  std::string text = num_prompt > 0 ? fmt::format("pp{}", num_prompt) : "";
  if (num_generated > 0) {
    text += fmt::format("{}tg{}", text.empty() ? "" : "+", num_generated);
  }
  return depth > 0 ? fmt::format("{} @ d{}", text, depth) : text;
}

std::vector<double> BenchResult::samples_ts() const {
  const auto tokens = static_cast<double>(benchmarked.num_prompt + benchmarked.num_generated);
  std::vector<double> rates;
  for (const std::int64_t ns : samples_ns) {
    rates.push_back(tokens * 1e9 / static_cast<double>(std::max<std::int64_t>(1, ns)));
  }
  return rates;
}

MeanAndDeviation mean_and_deviation(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  MeanAndDeviation result;
  for (const double value : values) {
    result.mean += value / count;
  }
  double squares = 0;
  for (const double value : values) {
    squares += (value - result.mean) * (value - result.mean);
  }
  result.deviation = values.size() > 1 ? std::sqrt(squares / (count - 1)) : 0;
  return result;
}

Result<PlanReport> plan_case(const Engine& engine, const BenchCase& benchmarked) {
  const std::int64_t len = prompt_len(benchmarked);
  Result<PlanReport> plan = engine.plan(options_of(benchmarked), len);
  if (!plan.ok()) {
    return Error{plan.error().code,
                 fmt::format("{}: {}", benchmarked.name(), plan.error().message)};
  }
  const PlanReport& report = plan.value();
  if (benchmarked.num_generated > 0 && report.max_new_tokens < wanted_tokens(benchmarked)) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{}: {} tokens before the {} generated are more than the context of "
                    "{}; give less to -n or -d",
                    benchmarked.name(), len + 1, benchmarked.num_generated, report.context_len)};
  }
  return plan;
}

Result<BenchResult> run_case(const Engine& engine, const BenchCase& benchmarked,
                             const BenchSampling& sampling) {
  Request request;
  request.prompt = random_prompt(engine.model(), prompt_len(benchmarked), sampling.seed);
  request.prefill = options_of(benchmarked);
  request.sampling.temperature = 0;
  request.ignore_eos = true;

  BenchResult result;
  result.benchmarked = benchmarked;
  result.test_time = utc_now();
  forget_process_peak();
  if (sampling.warm_up) {
    Request first = request;
    first.prefill.max_new_tokens = std::min<std::int64_t>(2, request.prefill.max_new_tokens);
    TIDEKV_TRY(generate(engine, first));
  }
  for (int i = 0; i < sampling.repetitions; ++i) {
    TIDEKV_ASSIGN(result.last, generate(engine, request));
    result.samples_ns.push_back(std::llround(timed_seconds(benchmarked, result.last) * 1e9));
  }
  result.process_peak_bytes = result.last.process_peak_bytes;
  result.last.tokens.clear();
  result.last.text.clear();
  return result;
}

}  // namespace tidekv::cli
