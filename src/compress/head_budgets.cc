#include "compress/head_budgets.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tidekv {

std::vector<std::int64_t> split_over_heads(std::span<const std::int32_t> counts, double even_share,
                                           std::int64_t base, std::int64_t limit) {
  // In millionths, so that equal remainders are equal.
  constexpr std::int64_t kWhole = 1'000'000;
  const auto even = static_cast<std::int64_t>(std::llround(even_share * kWhole));
  std::vector<std::int64_t> budgets(counts.size());
  std::vector<std::int64_t> remainders(counts.size());
  std::int64_t left = static_cast<std::int64_t>(counts.size()) * base;
  for (std::size_t head = 0; head < counts.size(); ++head) {
    const std::int64_t wanted = (kWhole - even) * counts[head] + even * base;
    budgets[head] = std::min(wanted / kWhole, limit);
    remainders[head] = wanted % kWhole;
    left -= budgets[head];
  }
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  // Once around the heads is enough, but where counts do not add up: in a dry run they are 0.
  while (left > 0) {
    for (const std::size_t head : order) {
      if (left > 0 && budgets[head] < limit) {
        budgets[head] += 1;
        left -= 1;
      }
    }
  }
  return budgets;
}

}  // namespace tidekv
