// A matrix in host memory, stored in the element type a device would hold it in, and read and
// written as double: the common ground of the oracle and the backends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/view.h"

namespace tidekv::oracle {

class HostTensor {
 public:
  HostTensor() = default;
  // All bits zero.
  HostTensor(DType dtype, std::int64_t rows, std::int64_t cols);

  DType dtype() const { return dtype_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  std::span<std::byte> bytes() { return bytes_; }
  HostView view() const { return {bytes_.data(), dtype_, rows_, cols_}; }

  // Exact.
  double at(std::int64_t row, std::int64_t col) const;
  // Rounds to the element type, nearest, ties to even. Not for quantised types.
  void set(std::int64_t row, std::int64_t col, double value);
  void fill(double value);
  // A copy of rows [first, first + count).
  HostTensor rows_at(std::int64_t first, std::int64_t count) const;
  // Overwrites rows from `first` on.
  void put_rows(std::int64_t first, const HostTensor& rows);
  // All elements, row by row.
  std::vector<double> values() const;

 private:
  // Of the block that holds the element, if the type has blocks.
  std::size_t byte_at(std::int64_t row, std::int64_t col) const {
    return static_cast<std::size_t>(row * row_bytes(dtype_, cols_) + row_bytes(dtype_, col));
  }

  DType dtype_ = DType::kF32;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::vector<std::byte> bytes_;
};

// Nearest f16, ties to even; overflows to infinity.
std::uint16_t double_to_f16(double value);

// Test data from a fixed seed, the same on every platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  double uniform(double low, double high);
  double normal();
  // An integer of [0, limit).
  std::int64_t below(std::int64_t limit);
  HostTensor normals(DType dtype, std::int64_t rows, std::int64_t cols, double scale = 1.0);
  HostTensor uniforms(DType dtype, std::int64_t rows, std::int64_t cols, double low, double high);
  // Blocks of a quantised type: any numbers, scales and minima such that elements are around 1.
  HostTensor blocks(DType dtype, std::int64_t rows, std::int64_t cols);

 private:
  std::mt19937_64 engine_;
};

}  // namespace tidekv::oracle
