// What `tidekv bench fidelity` found: a report for each prompt, and the means over all of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tidekv/fidelity.h"

namespace tidekv::cli {

struct PromptFidelity {
  std::string id;
  FidelityReport report;
};

struct FidelityResults {
  std::string model;
  std::string backend;
  std::vector<SweepTarget> targets;
  std::vector<std::int64_t> budgets;    // as given; the first is the one that tables are about
  std::vector<PromptFidelity> prompts;  // one at least

  // Whether the tables are about this target: it has their budget, or none.
  bool is_main(const SweepTarget& target) const;
};

// One method and budget over all prompts. Means of what is exactly 0 or 1 are exactly that.
struct FidelitySummary {
  std::string control;
  std::size_t prefill = 0;
  bool shares_prefill = false;  // with another target, or with the reference
  double prefill_seconds = 0;
  Drift hidden;
  std::vector<Drift> layers;
  std::vector<Drift> chunks;  // of the prompts that are as long
  double equal_rows = 0;      // share of all rows of all layers
  double top1_agreement = 0;
  double js_divergence = 0;
  std::vector<double> kl_by_token;
  double kl_mean = 0;
  double kl_max = 0;
  double log_probability = 0;
  Eq3Terms eq3;
};

FidelitySummary summary_of(const FidelityResults& results, std::size_t target);

}  // namespace tidekv::cli
