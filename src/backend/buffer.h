// Move-only owner of device bytes, tagged with what they are for at birth.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "memory/component.h"
#include "tensor/view.h"

namespace tidekv {

class Backend;

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();

  explicit operator bool() const { return backend_ != nullptr; }
  std::int64_t num_bytes() const { return bytes_; }

  // A matrix over the bytes from `offset_bytes` on.
  DeviceView view(DType dtype, std::int64_t rows, std::int64_t cols,
                  std::int64_t offset_bytes = 0) const;

  // From now on the bytes charged to `from` count as `to`.
  void retag(Component from, Component to);

 private:
  friend class Backend;
  static constexpr std::size_t kMaxCharges = 2;
  void release();

  Backend* backend_ = nullptr;
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  std::int64_t id_ = -1;  // ordinal of the allocation in this request
  std::array<Charge, kMaxCharges> charges_{};
};

}  // namespace tidekv
