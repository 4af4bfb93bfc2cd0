// KV of one layer in the offload pool: HeadInfer's layout.
//
// Rows go down once, when they are new, and never change; a head's rows come up whenever it
// attends.
#pragma once

#include <cstdint>

#include "cache/offload_ring.h"

namespace tidekv {

class OffloadedKv final : public AttendedKv {
 public:
  // `rows` [2 * num_kv_heads * capacity, D]: keys, then values. `ring`, which all layers share, and
  // the backend outlive this object.
  OffloadedKv(Backend& backend, OffloadRing& ring, PoolView rows, std::int64_t num_kv_heads);

  KvView room(std::int64_t rows) override;
  void advance(std::int64_t rows) override;
  KeyCounts keys_met(std::int64_t rows) const override;
  void attend(Backend& backend, DeviceView q, const AttentionOptions& options) override;

  // Calls body(PoolView) for the rows of each head's first `len` tokens: keys, then values.
  template <typename Body>
  void for_each_view(std::int64_t len, const Body& body) const {
    for (const PoolView& rows : {keys_, values_}) {
      for (std::int64_t head = 0; head < num_kv_heads_; ++head) {
        body(rows.rows_at(head * capacity_, len));
      }
    }
  }

 private:
  // The head's rows into its slot: what is in the pool, and behind it what is still new.
  void bring_up(std::int64_t head);

  Backend* backend_;
  OffloadRing* ring_;
  PoolView keys_;
  PoolView values_;
  std::int64_t num_kv_heads_;
  std::int64_t capacity_;      // rows of a head
  std::int64_t len_ = 0;       // of each head
  std::int64_t new_rows_ = 0;  // of them, those that the ring holds as well
};

}  // namespace tidekv
