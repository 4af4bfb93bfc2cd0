#include "fidelity_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "list_flags.h"
#include "log_plot.h"
#include "text_layout.h"

namespace tidekv::cli {
namespace {

// A method with its means at every budget, in the order of the budgets.
struct MethodDrift {
  std::string name;
  std::vector<std::pair<std::int64_t, Drift>> by_budget;
  std::vector<Drift> by_chunk;  // at the main budget
  bool exact = true;            // equal bit for bit, everywhere
};

std::vector<MethodDrift> drifts_of(const FidelityResults& results) {
  std::vector<MethodDrift> methods;
  for (std::size_t i = 0; i < results.targets.size(); ++i) {
    const SweepTarget& target = results.targets[i];
    const FidelitySummary summary = summary_of(results, i);
    auto method = std::find_if(methods.begin(), methods.end(), [&](const MethodDrift& known) {
      return known.name == target.method;
    });
    if (method == methods.end()) {
      method = methods.insert(methods.end(), MethodDrift{target.method, {}, {}, true});
    }
    method->by_budget.emplace_back(target.budget, summary.hidden);
    method->exact = method->exact && summary.equal_rows == 1;
    if (results.is_main(target)) {
      method->by_chunk = summary.chunks;
    }
  }
  for (MethodDrift& method : methods) {
    std::sort(method.by_budget.begin(), method.by_budget.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  return methods;
}

// "full-chunked, tide-noevict, tidekv-*: 0, bit for bit". The star stands for all of them compared,
// where there are several and all are exact.
std::string zero_label(const std::vector<MethodDrift>& methods) {
  constexpr std::string_view kDelayed = "tidekv-";
  std::vector<std::string> names;
  std::vector<std::string> delayed;
  bool all_delayed = true;
  for (const MethodDrift& method : methods) {
    if (method.name.starts_with(kDelayed)) {
      all_delayed = all_delayed && method.exact;
    }
    if (method.exact) {
      (method.name.starts_with(kDelayed) ? delayed : names).push_back(method.name);
    }
  }
  if (delayed.size() > 1 && all_delayed) {
    delayed = {"tidekv-*"};
  }
  names.insert(names.end(), delayed.begin(), delayed.end());
  constexpr std::size_t kMostNamed = 4;
  if (names.size() > kMostNamed) {
    const std::size_t more = names.size() - kMostNamed + 1;
    names.resize(kMostNamed - 1);
    names.push_back(fmt::format("{} more", more));
  }
  return names.empty() ? "" : fmt::format("{}: 0, bit for bit", fmt::join(names, ", "));
}

PlotPanel by_chunk(const std::vector<MethodDrift>& methods) {
  PlotPanel panel{.title = "(a) by chunk",
                  .x_label = "chunk of the prompt",
                  .y_label = "hidden relative L2",
                  .x_scale = PlotScale::kLinear,
                  .x_ticks = {},
                  .series = {},
                  .zero_label = zero_label(methods)};
  std::size_t num_chunks = 1;
  for (std::size_t m = 0; m < methods.size(); ++m) {
    num_chunks = std::max(num_chunks, methods[m].by_chunk.size());
    if (methods[m].exact) {
      continue;
    }
    PlotSeries series{methods[m].name, static_cast<int>(panel.series.size()), {}};
    for (std::size_t chunk = 0; chunk < methods[m].by_chunk.size(); ++chunk) {
      series.points.emplace_back(chunk, methods[m].by_chunk[chunk].relative_l2);
    }
    panel.series.push_back(std::move(series));
  }
  const std::size_t step = std::max<std::size_t>(1, (num_chunks + 7) / 8);
  for (std::size_t chunk = 0; chunk < num_chunks; chunk += step) {
    panel.x_ticks.emplace_back(chunk, std::to_string(chunk));
  }
  return panel;
}

PlotPanel by_budget(const FidelityResults& results, const std::vector<MethodDrift>& methods) {
  PlotPanel panel{.title = "(b) by budget",
                  .x_label = "budget, tokens a layer and KV head",
                  .y_label = "hidden relative L2",
                  .x_scale = PlotScale::kLogarithmic,
                  .x_ticks = {},
                  .series = {},
                  .zero_label = zero_label(methods)};
  for (const MethodDrift& method : methods) {
    if (method.exact) {
      continue;
    }
    PlotSeries series{method.name, static_cast<int>(panel.series.size()), {}};
    for (const auto& [budget, drift] : method.by_budget) {
      series.points.emplace_back(static_cast<double>(budget), drift.relative_l2);
    }
    panel.series.push_back(std::move(series));
  }
  for (const std::int64_t budget : results.budgets) {
    panel.x_ticks.emplace_back(static_cast<double>(budget), grouped(budget));
  }
  return panel;
}

// The last part of a path.
std::string name_of_model(std::string path) {
  path.erase(path.find_last_not_of('/') + 1);
  return printable(path.substr(path.rfind('/') + 1));
}

}  // namespace

std::string fidelity_svg(const FidelityResults& results) {
  const std::vector<MethodDrift> methods = drifts_of(results);
  const FidelityReport& first = results.prompts.front().report;
  const std::string title = fmt::format(
      "Drift from the full cache: {}, {} prompt{} of {} tokens, chunk {}, budget {}",
      name_of_model(results.model), results.prompts.size(), results.prompts.size() == 1 ? "" : "s",
      grouped(first.prompt_len), grouped(first.chunk_len), grouped(results.budgets.front()));
  return plot_svg(title, {by_chunk(methods), by_budget(results, methods)});
}

}  // namespace tidekv::cli
