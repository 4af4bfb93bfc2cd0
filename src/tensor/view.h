// Views of two-dimensional tensors. Own no memory.
//
// They are several types on purpose: host code may read a HostView, and only a backend may look
// inside the others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace tidekv {

// A read-only matrix in host memory: [rows, cols], contiguous. A vector has one row. `data` may be
// null when only the shape is known (planning without a model file).
struct HostView {
  const std::byte* data = nullptr;
  DType dtype = DType::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;

  std::int64_t num_bytes() const { return rows * row_bytes(dtype, cols); }
};

// A matrix in device memory: [rows, cols], contiguous.
class DeviceView {
 public:
  DeviceView() = default;
  DeviceView(std::byte* data, DType dtype, std::int64_t rows, std::int64_t cols)
      : data_(data), dtype_(dtype), rows_(rows), cols_(cols) {}

  DType dtype() const { return dtype_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  std::int64_t num_bytes() const { return rows_ * row_bytes(dtype_, cols_); }

  // Rows [first, first + count). The caller keeps the range inside the view.
  DeviceView rows_at(std::int64_t first, std::int64_t count) const {
    std::byte* start = data_ == nullptr ? nullptr : data_ + first * row_bytes(dtype_, cols_);
    return {start, dtype_, count, cols_};
  }

  // The same elements in the same order under another shape.
  DeviceView reshaped(std::int64_t rows, std::int64_t cols) const {
    return {data_, dtype_, rows, cols};
  }

  // Backends only; tools/check_includes.py rejects a call anywhere else.
  std::byte* device_ptr() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  DType dtype_ = DType::kF32;
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
};

// A matrix in the offload pool. Only a transfer to or from the device may look inside, not a
// kernel.
class PoolView {
 public:
  PoolView() = default;
  explicit PoolView(DeviceView bytes) : bytes_(bytes) {}

  DType dtype() const { return bytes_.dtype(); }
  std::int64_t rows() const { return bytes_.rows(); }
  std::int64_t cols() const { return bytes_.cols(); }
  std::int64_t num_bytes() const { return bytes_.num_bytes(); }
  PoolView rows_at(std::int64_t first, std::int64_t count) const {
    return PoolView(bytes_.rows_at(first, count));
  }
  PoolView reshaped(std::int64_t rows, std::int64_t cols) const {
    return PoolView(bytes_.reshaped(rows, cols));
  }

 private:
  friend class Backend;
  DeviceView bytes_;
};

}  // namespace tidekv
