// One line of a benchmark: what runs, how often, and what came out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tidekv/engine.h"
#include "tidekv/options.h"
#include "tidekv/result.h"

namespace tidekv::cli {

struct BenchCase {
  std::int64_t num_prompt = 0;     // tokens of a timed prefill; 0: none is timed
  std::int64_t num_generated = 0;  // timed tokens
  std::int64_t depth = 0;          // prompt tokens before the timed ones, not timed
  PrefillOptions prefill;          // max_new_tokens is set by run_case()

  // "pp512", "tg128", "pp512+tg128", "tg128 @ d4096".
  std::string name() const;
};

struct BenchSampling {
  int repetitions = 5;
  bool warm_up = true;
  std::uint64_t seed = 1;  // of the prompt's token ids
};

struct BenchResult {
  BenchCase benchmarked;
  ModelInfo model;
  int num_threads = 0;
  std::string test_time;                 // when it began, ISO 8601, UTC
  std::vector<std::int64_t> samples_ns;  // one a repetition
  RunReport last;                        // of the last repetition, without its tokens
  std::int64_t process_peak_bytes = 0;   // largest resident set since this case began

  std::vector<double> samples_ts() const;  // tokens per second
};

struct MeanAndDeviation {
  double mean = 0;
  double deviation = 0;  // of a sample; 0 for a single number
};
MeanAndDeviation mean_and_deviation(const std::vector<double>& values);

// Any ids, always the same for one seed; BOS first where the model has one.
std::vector<std::int32_t> random_prompt(const ModelInfo& model, std::int64_t len,
                                        std::uint64_t seed);

// The plan of a case, or why it cannot run: what it needs is more than the context holds.
Result<PlanReport> plan_case(const Engine& engine, const BenchCase& benchmarked);

// Runs the case; kCancelled when the stop flag was set. The fields of the setting (model, threads)
// are the caller's to fill.
Result<BenchResult> run_case(const Engine& engine, const BenchCase& benchmarked,
                             const BenchSampling& sampling);

}  // namespace tidekv::cli
