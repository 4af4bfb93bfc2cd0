#include "backend/buffer.h"

#include <utility>

#include "backend/backend.h"
#include "base/check.h"

namespace tidekv {

Buffer::Buffer(Buffer&& other) noexcept { *this = std::move(other); }

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    release();
    backend_ = std::exchange(other.backend_, nullptr);
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
    id_ = std::exchange(other.id_, -1);
    charges_ = std::exchange(other.charges_, {});
  }
  return *this;
}

Buffer::~Buffer() { release(); }

DeviceView Buffer::view(DType dtype, std::int64_t rows, std::int64_t cols,
                        std::int64_t offset_bytes) const {
  TIDEKV_CHECK_OP(offset_bytes + rows * row_bytes(dtype, cols), <=, bytes_);
  return {data_ == nullptr ? nullptr : data_ + offset_bytes, dtype, rows, cols};
}

void Buffer::retag(Component from, Component to) {
  for (Charge& charge : charges_) {
    if (charge.component == from && charge.bytes > 0) {
      backend_->accountant().retag(from, to, charge.bytes);
      charge.component = to;
    }
  }
}

void Buffer::release() {
  if (backend_ != nullptr) {
    backend_->release(*this);
    backend_ = nullptr;
  }
}

}  // namespace tidekv
