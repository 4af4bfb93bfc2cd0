// Rounding that keeps a sum.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace tidekv {

// The indices of `remainders`, largest first, of equal ones the lower index first: the order in
// which shares that were rounded down get what is left.
template <typename Remainder>
std::vector<std::size_t> by_largest_remainder(std::span<const Remainder> remainders) {
  std::vector<std::size_t> order(remainders.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  return order;
}

}  // namespace tidekv
