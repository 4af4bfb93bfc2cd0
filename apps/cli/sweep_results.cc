#include "sweep_results.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tidekv::cli {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

double mean_kept(const std::vector<LayerRetention>& layers) {
  double kept = 0;
  for (const LayerRetention& layer : layers) {
    kept += static_cast<double>(layer.kept);
  }
  return layers.empty() ? 0 : kept / static_cast<double>(layers.size());
}

}  // namespace

std::int64_t SweepResults::num_scored() const {
  return std::count_if(prompts.begin(), prompts.end(),
                       [](const PromptResult& prompt) { return prompt.scored; });
}

Interval wilson_interval(std::int64_t right, std::int64_t count) {
  if (count == 0) {
    return {0, 100};
  }
  constexpr double kZ = 1.959964;
  const auto n = static_cast<double>(count);
  const double share = static_cast<double>(right) / n;
  const double centre = share + kZ * kZ / (2 * n);
  const double spread = kZ * std::sqrt(share * (1 - share) / n + kZ * kZ / (4 * n * n));
  const double scale = 100 / (1 + kZ * kZ / n);
  return {std::max(0.0, (centre - spread) * scale), std::min(100.0, (centre + spread) * scale)};
}

std::vector<PrefillGroup> prefill_groups(const std::vector<SweepTarget>& targets) {
  std::vector<PrefillGroup> groups(1);  // the first is of those that share
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (can_share_prefill(targets[i].method)) {
      groups.front().push_back(i);
    } else {
      groups.push_back({i});
    }
  }
  if (groups.front().empty()) {
    groups.erase(groups.begin());
  }
  return groups;
}

SweepReport joined(const std::vector<PrefillGroup>& groups, std::vector<SweepReport> parts) {
  std::size_t num_targets = 0;
  for (const PrefillGroup& group : groups) {
    num_targets += group.size();
  }
  SweepReport whole = parts.front();
  whole.targets.resize(num_targets);
  whole.plan.alone.resize(num_targets);
  whole.plan.cache_of.resize(num_targets);
  whole.plan.num_caches = 0;
  whole.prefill_seconds = 0;
  whole.compress_seconds = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    SweepReport& part = parts[g];
    for (std::size_t i = 0; i < groups[g].size(); ++i) {
      const std::size_t target = groups[g][i];
      whole.targets[target] = std::move(part.targets[i]);
      whole.plan.alone[target] = std::move(part.plan.alone[i]);
      whole.plan.cache_of[target] = whole.plan.num_caches + part.plan.cache_of[i];
    }
    whole.plan.num_caches += part.plan.num_caches;
    whole.prefill_seconds += part.prefill_seconds;
    whole.compress_seconds += part.compress_seconds;
    whole.process_peak_bytes = std::max(whole.process_peak_bytes, part.process_peak_bytes);
    const std::int64_t pool_bytes = std::max(whole.memory.pool_bytes, part.memory.pool_bytes);
    if (part.memory.peak_bytes > whole.memory.peak_bytes) {
      whole.memory = part.memory;
      whole.plan.memory = part.plan.memory;
    }
    whole.memory.pool_bytes = pool_bytes;  // the peaks may be of different prefills
    whole.plan.memory.pool_bytes = pool_bytes;
  }
  return whole;
}

TargetSummary summary_of(const SweepResults& results, std::size_t target) {
  TargetSummary summary;
  const auto count = static_cast<double>(std::max<std::size_t>(results.prompts.size(), 1));
  for (const PromptResult& prompt : results.prompts) {
    const TargetReport& report = prompt.report.targets[target];
    summary.right += prompt.scored && prompt.right[target] ? 1 : 0;
    summary.kept += mean_kept(report.layers);
    summary.alone_peak_bytes =
        std::max(summary.alone_peak_bytes, prompt.report.plan.alone[target].memory.peak_bytes);
    summary.prefill_seconds += report.prefill_seconds;
    summary.decode_tokens +=
        static_cast<double>(std::max<std::int64_t>(report.generated_tokens - 1, 0));
    summary.decode_seconds += report.decode_seconds;
  }
  summary.kept /= count;
  summary.prefill_seconds /= count;
  return summary;
}

bool says_all(std::string_view text, const std::vector<std::string>& answers) {
  const std::string said = lowered(text);
  return std::all_of(answers.begin(), answers.end(), [&](const std::string& answer) {
    return said.find(lowered(answer)) != std::string::npos;
  });
}

}  // namespace tidekv::cli
