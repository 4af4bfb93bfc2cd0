#include "cache/offloaded_kv.h"

#include "base/check.h"

namespace tidekv {

OffloadedKv::OffloadedKv(Backend& backend, OffloadRing& ring, PoolView rows,
                         std::int64_t num_kv_heads)
    : backend_(&backend),
      ring_(&ring),
      keys_(rows.rows_at(0, rows.rows() / 2)),
      values_(rows.rows_at(rows.rows() / 2, rows.rows() / 2)),
      num_kv_heads_(num_kv_heads),
      capacity_(keys_.rows() / num_kv_heads) {}

KvView OffloadedKv::room(std::int64_t rows) {
  TIDEKV_CHECK_OP(len_ + rows, <=, capacity_);
  return ring_->new_rows();
}

void OffloadedKv::advance(std::int64_t rows) {
  for (std::int64_t head = 0; head < num_kv_heads_; ++head) {
    const std::int64_t first = head * capacity_ + len_;
    backend_->store(ring_->new_keys(head, rows), keys_.rows_at(first, rows));
    backend_->store(ring_->new_values(head, rows), values_.rows_at(first, rows));
  }
  len_ += rows;
  new_rows_ = rows;
}

void OffloadedKv::bring_up(std::int64_t head) {
  const std::int64_t old_rows = len_ - new_rows_;
  const DeviceView keys = ring_->slot_keys(head);
  const DeviceView values = ring_->slot_values(head);
  if (old_rows > 0) {
    backend_->load(keys_.rows_at(head * capacity_, old_rows), keys.rows_at(0, old_rows));
    backend_->load(values_.rows_at(head * capacity_, old_rows), values.rows_at(0, old_rows));
  }
  backend_->copy(ring_->new_keys(head, new_rows_), keys.rows_at(old_rows, new_rows_));
  backend_->copy(ring_->new_values(head, new_rows_), values.rows_at(old_rows, new_rows_));
}

KeyCounts OffloadedKv::keys_met(std::int64_t rows) const { return {len_ + rows, len_ + rows}; }

void OffloadedKv::attend(Backend& backend, DeviceView q, const AttentionOptions& options) {
  bring_up(0);
  for (std::int64_t head = 0; head < num_kv_heads_; ++head) {
    if (head + 1 < num_kv_heads_) {  // first, so that a device can do both at once
      bring_up(head + 1);
    }
    backend.attend(q, ring_->attending(head, len_, num_kv_heads_), options);
  }
}

}  // namespace tidekv
