// Overflow-checked sizes. The only way to compute a byte or element count from a file's numbers.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

namespace tidekv {

// a * b, or nothing if a factor is negative or the product exceeds int64.
constexpr std::optional<std::int64_t> checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) {
    return std::nullopt;
  }
  return product;
}

// a + b, or nothing if a term is negative or the sum exceeds int64.
constexpr std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &sum)) {
    return std::nullopt;
  }
  return sum;
}

// Product of all factors (1 for none), or nothing on a negative factor or overflow.
constexpr std::optional<std::int64_t> checked_product(std::initializer_list<std::int64_t> factors) {
  std::optional<std::int64_t> product = 1;
  for (const std::int64_t factor : factors) {
    product = checked_mul(*product, factor);
    if (!product) {
      return std::nullopt;
    }
  }
  return product;
}

// Smallest multiple of `step` that is >= value. Both positive and far from the int64 limit.
constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

constexpr std::int64_t ceil_div(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

}  // namespace tidekv
