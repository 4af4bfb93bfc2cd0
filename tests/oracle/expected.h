// What an operation should return: the exact value of every element and how far rounding may take
// a backend from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tidekv::oracle {

struct Expected {
  Expected() = default;
  Expected(std::int64_t rows_in, std::int64_t cols_in)
      : rows(rows_in),
        cols(cols_in),
        value(static_cast<std::size_t>(rows_in * cols_in)),
        bound(value.size()) {}

  void set(std::int64_t row, std::int64_t col, double exact, double rounding) {
    value[index(row, col)] = exact;
    bound[index(row, col)] = rounding;
  }
  std::size_t index(std::int64_t row, std::int64_t col) const {
    return static_cast<std::size_t>(row * cols + col);
  }

  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<double> value;
  std::vector<double> bound;
};

}  // namespace tidekv::oracle
