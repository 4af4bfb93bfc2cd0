#include "compress/head_budgets.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "compress/largest_remainder.h"

namespace tidekv {

std::vector<std::int64_t> split_over_heads(std::span<const std::int32_t> counts, double even_share,
                                           std::int64_t base,
                                           std::span<const std::int64_t> limits) {
  // In millionths, so that equal remainders are equal.
  constexpr std::int64_t kWhole = 1'000'000;
  const auto even = static_cast<std::int64_t>(std::llround(even_share * kWhole));
  std::vector<std::int64_t> budgets(counts.size());
  std::vector<std::int64_t> remainders(counts.size());
  std::int64_t left = static_cast<std::int64_t>(counts.size()) * base;
  for (std::size_t head = 0; head < counts.size(); ++head) {
    const std::int64_t wanted = (kWhole - even) * counts[head] + even * base;
    budgets[head] = std::min(wanted / kWhole, limits[head]);
    remainders[head] = wanted % kWhole;
    left -= budgets[head];
  }
  const std::vector<std::size_t> order =
      by_largest_remainder(std::span<const std::int64_t>(remainders));
  // Once around the heads is enough, but where limits are reached, or counts do not add up: in a
  // dry run they are 0.
  while (left > 0) {
    for (const std::size_t head : order) {
      if (left > 0 && budgets[head] < limits[head]) {
        budgets[head] += 1;
        left -= 1;
      }
    }
  }
  return budgets;
}

std::vector<std::int64_t> split_above_floor(std::span<const float> scores,
                                            std::span<const std::int32_t> ids, std::int64_t stride,
                                            std::int64_t floor,
                                            std::span<const std::int64_t> limits) {
  std::vector<std::size_t> order(ids.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return scores[a] > scores[b] || (scores[a] == scores[b] && ids[a] < ids[b]);
  });
  const auto num_heads = static_cast<std::int64_t>(limits.size());
  std::vector<std::int64_t> seen(limits.size());
  std::vector<std::int64_t> budgets(seen.size(), floor);
  std::int64_t left = static_cast<std::int64_t>(ids.size()) - num_heads * floor;
  for (const std::size_t at : order) {
    const auto head = static_cast<std::size_t>(ids[at] / stride);
    seen[head] += 1;
    if (left > 0 && seen[head] > floor && budgets[head] < limits[head]) {
      budgets[head] += 1;
      left -= 1;
    }
  }
  for (std::size_t head = 0; left > 0; head = (head + 1) % budgets.size()) {  // in a dry run only
    if (budgets[head] < limits[head]) {
      budgets[head] += 1;
      left -= 1;
    }
  }
  return budgets;
}

}  // namespace tidekv
