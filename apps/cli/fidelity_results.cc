#include "fidelity_results.h"

#include <algorithm>

#include "tidekv/engine.h"

namespace tidekv::cli {
namespace {

void add(const Drift& drift, Drift& sum) {
  sum.relative_l2 += drift.relative_l2;
  sum.cosine += drift.cosine;
}

void divide(Drift& sum, double count) {
  sum.relative_l2 /= count;
  sum.cosine /= count;
}

constexpr Drift kNothing = {0, 0};

// Element by element, over the prompts that have one.
std::vector<Drift> mean_of(const FidelityResults& results, std::size_t target,
                           std::vector<Drift> TargetFidelity::*field) {
  std::vector<Drift> sums;
  std::vector<double> counts;
  for (const PromptFidelity& prompt : results.prompts) {
    const std::vector<Drift>& drifts = prompt.report.targets[target].*field;
    sums.resize(std::max(sums.size(), drifts.size()), kNothing);
    counts.resize(sums.size());
    for (std::size_t i = 0; i < drifts.size(); ++i) {
      add(drifts[i], sums[i]);
      counts[i] += 1;
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    divide(sums[i], counts[i]);
  }
  return sums;
}

void add_divergences(const std::vector<double>& kl, FidelitySummary& summary) {
  summary.kl_by_token.resize(std::max(summary.kl_by_token.size(), kl.size()));
  double sum = 0;
  for (std::size_t i = 0; i < kl.size(); ++i) {
    summary.kl_by_token[i] += kl[i];
    summary.kl_max = std::max(summary.kl_max, kl[i]);
    sum += kl[i];
  }
  summary.kl_mean += sum / static_cast<double>(kl.size());
}

bool shares_prefill(const FidelityReport& report, std::size_t target) {
  const std::size_t prefill = report.targets[target].prefill;
  const auto sharing =
      std::count_if(report.targets.begin(), report.targets.end(),
                    [prefill](const TargetFidelity& other) { return other.prefill == prefill; });
  return prefill == 0 || sharing > 1;
}

}  // namespace

bool FidelityResults::is_main(const SweepTarget& target) const {
  return keeps_everything(target.method) || target.budget == budgets.front();
}

FidelitySummary summary_of(const FidelityResults& results, std::size_t target) {
  FidelitySummary summary;
  const auto count = static_cast<double>(results.prompts.size());
  summary.hidden = kNothing;
  for (const PromptFidelity& prompt : results.prompts) {
    const TargetFidelity& one = prompt.report.targets[target];
    summary.prefill_seconds += one.prefill_seconds / count;
    add(one.hidden, summary.hidden);
    summary.equal_rows +=
        static_cast<double>(one.num_equal_rows) / static_cast<double>(one.num_rows);
    summary.top1_agreement += one.top1_agrees ? 1 : 0;
    summary.js_divergence += one.js_divergence / count;
    add_divergences(one.kl_divergence, summary);
    summary.log_probability += one.log_probability / count;
    summary.eq3.full_minus_control += one.eq3.full_minus_control / count;
    summary.eq3.control_minus_method += one.eq3.control_minus_method / count;
  }
  const TargetFidelity& first = results.prompts.front().report.targets[target];
  summary.control = first.control;
  summary.prefill = first.prefill;
  summary.shares_prefill = shares_prefill(results.prompts.front().report, target);
  divide(summary.hidden, count);
  summary.equal_rows /= count;
  summary.top1_agreement /= count;
  summary.kl_mean /= count;
  for (double& kl : summary.kl_by_token) {
    kl /= count;
  }
  summary.eq3.sum = summary.eq3.full_minus_control + summary.eq3.control_minus_method;
  summary.layers = mean_of(results, target, &TargetFidelity::layers);
  summary.chunks = mean_of(results, target, &TargetFidelity::chunks);
  return summary;
}

}  // namespace tidekv::cli
