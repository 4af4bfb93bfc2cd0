#include "compress/layer_budgets.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace tidekv {

void pyramid_budgets(const PyramidShape& shape, std::span<std::int64_t> budgets) {
  std::fill(budgets.begin(), budgets.end(), shape.budget);
  const std::int64_t base = shape.budget - shape.num_mandatory;
  const auto num_layers = static_cast<std::int64_t>(budgets.size());
  if (shape.prompt_len <= shape.budget || shape.prompt_len < 2 * base || num_layers == 1) {
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
  std::vector<std::size_t> order(budgets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  for (const std::size_t layer : order) {
    if (left > 0) {
      budgets[layer] += 1;
      left -= 1;
    }
  }
  for (std::int64_t& budget : budgets) {
    budget += shape.num_mandatory;
  }
}

}  // namespace tidekv
