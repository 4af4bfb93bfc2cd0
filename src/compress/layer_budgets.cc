#include "compress/layer_budgets.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "compress/largest_remainder.h"

namespace tidekv {
namespace {

// kvpress 0.5: the line is of whole budgets, each rounded to the nearest even. Layers are alike
// where the line would leave the last one less than the window.
void kvpress_budgets(const PyramidShape& shape, std::span<std::int64_t> budgets) {
  const auto total = static_cast<double>(shape.budget);
  const auto window = static_cast<double>(shape.num_mandatory);
  const auto len = static_cast<double>(shape.prompt_len);
  double last = total / static_cast<double>(shape.steepness);
  double first = 2 * total - last;
  if (first >= len - window) {
    first = len - window;
    last = 2 * total - first;
  }
  if (!(len >= first && first >= last && last >= window) || budgets.size() == 1) {
    return;
  }
  const double step = (first - last) / static_cast<double>(budgets.size() - 1);
  for (std::size_t layer = 0; layer < budgets.size(); ++layer) {
    budgets[layer] = std::lrint(first - static_cast<double>(layer) * step);
  }
}

// KVCache-Factory: candidates of a layer in whole numbers; what the rounded step leaves comes on
// top of the budget.
void kvcf_budgets(const PyramidShape& shape, std::span<std::int64_t> budgets) {
  const std::int64_t base = shape.budget - shape.num_mandatory;
  const std::int64_t most = shape.prompt_len - shape.num_mandatory;
  const auto num_layers = static_cast<std::int64_t>(budgets.size());
  if (shape.prompt_len < 2 * base || num_layers == 1) {
    return;
  }
  std::int64_t last = base / shape.steepness;
  std::int64_t first = 2 * base - last;
  if (first >= most) {
    first = most;
    last = 2 * base - first;
  }
  const std::int64_t step = (first - last) / (num_layers - 1);
  for (std::int64_t layer = 0; layer < num_layers; ++layer) {
    budgets[static_cast<std::size_t>(layer)] = first - layer * step + shape.num_mandatory;
  }
}

void exact_budgets(const PyramidShape& shape, std::span<std::int64_t> budgets) {
  const std::int64_t base = shape.budget - shape.num_mandatory;
  const auto num_layers = static_cast<std::int64_t>(budgets.size());
  if (shape.prompt_len < 2 * base || num_layers == 1) {
    return;
  }
  const auto average = static_cast<double>(base);
  const auto most = static_cast<double>(shape.prompt_len - shape.num_mandatory);
  double last = average / static_cast<double>(shape.steepness);
  double first = 2 * average - last;
  if (first >= most) {
    first = most;
    last = 2 * average - first;
  }
  std::vector<double> remainders(budgets.size());
  std::int64_t left = num_layers * base;
  for (std::size_t layer = 0; layer < budgets.size(); ++layer) {
    const double wanted =
        first - static_cast<double>(layer) * (first - last) / static_cast<double>(num_layers - 1);
    const double whole = std::floor(wanted);
    budgets[layer] = static_cast<std::int64_t>(whole);
    remainders[layer] = wanted - whole;
    left -= budgets[layer];
  }
  for (const std::size_t layer : by_largest_remainder(std::span<const double>(remainders))) {
    if (left > 0) {
      budgets[layer] += 1;
      left -= 1;
    }
  }
  for (std::int64_t& budget : budgets) {
    budget += shape.num_mandatory;
  }
}

}  // namespace

void pyramid_budgets(const PyramidShape& shape, std::span<std::int64_t> budgets) {
  std::fill(budgets.begin(), budgets.end(), shape.budget);
  if (shape.prompt_len <= shape.budget) {
    return;
  }
  switch (shape.rule) {
    case BudgetRule::kExact:
      exact_budgets(shape, budgets);
      break;
    case BudgetRule::kKvpress:
      kvpress_budgets(shape, budgets);
      break;
    case BudgetRule::kKvcf:
      kvcf_budgets(shape, budgets);
      break;
  }
}

}  // namespace tidekv
