#include "cache/offload_ring.h"

#include "base/check.h"

namespace tidekv {

Result<OffloadRing> OffloadRing::open(Backend& backend, const CacheShape& shape,
                                      std::span<HeadSpan> spans) {
  TIDEKV_CHECK_OP(spans.size(), ==, shape.num_kv_heads);
  OffloadRing ring;
  ring.chunk_len_ = shape.offload_chunk_len;
  ring.slot_len_ = shape.prompt_len + shape.growth_len;
  ring.spans_ = spans;
  const std::int64_t new_rows = shape.num_kv_heads * ring.chunk_len_;
  const std::int64_t slot_rows = kNumSlots * 2 * ring.slot_len_;
  const std::int64_t row_bytes = shape.head_dim * size_of(shape.dtype);
  TIDEKV_ASSIGN(
      ring.buffer_,
      backend.allocate({{Component::kOffloadRing, (2 * new_rows + slot_rows) * row_bytes}}));
  const auto rows_at = [&](std::int64_t first, std::int64_t count) {
    return ring.buffer_.view(shape.dtype, count, shape.head_dim, first * row_bytes);
  };
  ring.new_keys_ = rows_at(0, new_rows);
  ring.new_values_ = rows_at(new_rows, new_rows);
  ring.slots_ = rows_at(2 * new_rows, slot_rows);
  return ring;
}

KvView OffloadRing::new_rows() {
  for (std::size_t head = 0; head < spans_.size(); ++head) {
    spans_[head] = {static_cast<std::int64_t>(head) * chunk_len_, 0, chunk_len_};
  }
  return {new_keys_, new_values_, spans_};
}

KvView OffloadRing::attending(std::int64_t head, std::int64_t len, std::int64_t num_heads) {
  attending_.front() = {0, len, slot_len_};
  return {slot_keys(head), slot_values(head), attending_, head, num_heads};
}

}  // namespace tidekv
