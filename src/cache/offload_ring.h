// What the device holds of a cache that lives in the offload pool (HeadInfer): the rows of new
// tokens on their way down, and two slots that the KV heads of all layers take in turn: one attends
// while the next comes up.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "cache/layer_kv.h"

namespace tidekv {

class OffloadRing {
 public:
  static constexpr std::int64_t kNumSlots = 2;

  // Slots as long as a head can become, `shape.offload_chunk_len` new rows of every head. `spans`
  // [num_kv_heads] outlives this object.
  static Result<OffloadRing> open(Backend& backend, const CacheShape& shape,
                                  std::span<HeadSpan> spans);

  // New rows of all heads, none of them there yet.
  KvView new_rows();
  // The first `rows` new rows of a head.
  DeviceView new_keys(std::int64_t head, std::int64_t rows) const {
    return new_keys_.rows_at(head * chunk_len_, rows);
  }
  DeviceView new_values(std::int64_t head, std::int64_t rows) const {
    return new_values_.rows_at(head * chunk_len_, rows);
  }

  DeviceView slot_keys(std::int64_t head) const { return slot(2 * (head % kNumSlots)); }
  DeviceView slot_values(std::int64_t head) const { return slot(2 * (head % kNumSlots) + 1); }
  // The head in its slot, which holds `len` rows: the one head of `num_heads` that attends.
  KvView attending(std::int64_t head, std::int64_t len, std::int64_t num_heads);

 private:
  DeviceView slot(std::int64_t half) const { return slots_.rows_at(half * slot_len_, slot_len_); }

  Buffer buffer_;
  DeviceView new_keys_;    // [num_kv_heads * chunk_len_, D]
  DeviceView new_values_;  // the same
  DeviceView slots_;       // [kNumSlots * 2 * slot_len_, D]: of each keys, then values
  std::int64_t chunk_len_ = 0;
  std::int64_t slot_len_ = 0;
  std::span<HeadSpan> spans_;
  std::array<HeadSpan, 1> attending_{};
};

}  // namespace tidekv
