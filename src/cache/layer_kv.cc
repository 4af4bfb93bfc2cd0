#include "cache/layer_kv.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace tidekv {

Result<LayerKv> LayerKv::allocate(Backend& backend, const CacheShape& shape, const Rows& rows,
                                  std::span<HeadSpan> spans) {
  TIDEKV_CHECK_OP(spans.size(), ==, shape.num_kv_heads);
  TIDEKV_CHECK_OP(rows.lens.size(), ==, shape.num_kv_heads);
  const std::int64_t num_rows =
      std::accumulate(rows.lens.begin(), rows.lens.end(), std::int64_t{0});
  const std::int64_t slab_rows = num_rows + shape.num_kv_heads * rows.growth;
  LayerKv kv;
  TIDEKV_ASSIGN(kv.buffer_,
                backend.allocate({{rows.component, num_rows * shape.row_bytes()},
                                  {Component::kDecodeGrowth, shape.kv_bytes(rows.growth)}}));
  kv.keys_ = kv.buffer_.view(shape.dtype, slab_rows, shape.head_dim);
  kv.values_ = kv.buffer_.view(shape.dtype, slab_rows, shape.head_dim, kv.keys_.num_bytes());
  kv.spans_ = spans;
  kv.lay_out(rows.lens, rows.growth);
  return kv;
}

void LayerKv::lay_out(std::span<const std::int64_t> lens, std::int64_t growth) {
  TIDEKV_CHECK_OP(lens.size(), ==, spans_.size());
  std::int64_t slab_rows = 0;
  for (std::size_t head = 0; head < spans_.size(); ++head) {
    const std::int64_t capacity = lens[head] + growth;
    spans_[head] = {slab_rows, 0, capacity};
    slab_rows += capacity;
  }
  TIDEKV_CHECK_OP(slab_rows, <=, keys_.rows());
}

void LayerKv::shrink(std::span<const std::int64_t> lens) {
  TIDEKV_CHECK_OP(lens.size(), ==, spans_.size());
  for (std::size_t head = 0; head < spans_.size(); ++head) {
    TIDEKV_CHECK_OP(lens[head], <=, spans_[head].len);
    spans_[head].len = lens[head];
  }
}

void LayerKv::copy_rows(Backend& backend, const LayerKv& from) {
  for (std::size_t head = 0; head < spans_.size(); ++head) {
    const HeadSpan& source = from.spans_[head];
    const auto rows_of = [&](DeviceView slab, std::int64_t offset) {
      return slab.rows_at(offset, source.len);
    };
    HeadSpan& target = spans_[head];
    TIDEKV_CHECK(target.len == 0 && source.len <= target.capacity);
    backend.copy(rows_of(from.keys_, source.offset), rows_of(keys_, target.offset));
    backend.copy(rows_of(from.values_, source.offset), rows_of(values_, target.offset));
    target.len = source.len;
  }
}

KeyCounts LayerKv::keys_met(std::int64_t rows) const {
  const KvView now = view();
  return {now.longest_head() + rows, now.total_rows() + now.num_kv_heads() * rows};
}

void LayerKv::advance(std::int64_t rows) {
  for (HeadSpan& head : spans_) {
    head.len += rows;
    TIDEKV_CHECK_OP(head.len, <=, head.capacity);
  }
}

void LayerKv::advance(std::span<const std::int64_t> rows) {
  TIDEKV_CHECK_OP(rows.size(), ==, spans_.size());
  for (std::size_t head = 0; head < spans_.size(); ++head) {
    spans_[head].len += rows[head];
    TIDEKV_CHECK_OP(spans_[head].len, <=, spans_[head].capacity);
  }
}

void LayerKv::adopt(std::span<HeadSpan> spans, Component from, Component to) {
  std::copy(spans_.begin(), spans_.end(), spans.begin());
  spans_ = spans;
  buffer_.retag(from, to);
}

void append_rows(Backend& backend, const KvView& from, AttendedKv& to) {
  const std::int64_t rows = from.heads.front().len;
  const KvView room = to.room(rows);
  for (std::size_t head = 0; head < from.heads.size(); ++head) {
    const HeadSpan& source = from.heads[head];
    const std::int64_t first = room.heads[head].offset + room.heads[head].len;
    TIDEKV_CHECK_OP(source.len, ==, rows);
    backend.copy(from.keys.rows_at(source.offset, rows), room.keys.rows_at(first, rows));
    backend.copy(from.values.rows_at(source.offset, rows), room.values.rows_at(first, rows));
  }
  to.advance(rows);
}

}  // namespace tidekv
