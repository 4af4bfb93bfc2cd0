#include "cache/layer_kv.h"

#include <algorithm>

#include "base/check.h"

namespace tidekv {

Result<LayerKv> LayerKv::allocate(Backend& backend, const CacheShape& shape, Component component,
                                  std::int64_t len_rows, std::int64_t growth_rows,
                                  std::span<HeadSpan> spans) {
  TIDEKV_CHECK_OP(spans.size(), ==, shape.num_kv_heads);
  const std::int64_t capacity = len_rows + growth_rows;
  LayerKv kv;
  TIDEKV_ASSIGN(kv.buffer_,
                backend.allocate({{component, shape.kv_bytes(len_rows)},
                                  {Component::kDecodeGrowth, shape.kv_bytes(growth_rows)}}));
  const std::int64_t slab_rows = shape.num_kv_heads * capacity;
  kv.keys_ = kv.buffer_.view(shape.dtype, slab_rows, shape.head_dim);
  kv.values_ = kv.buffer_.view(shape.dtype, slab_rows, shape.head_dim, kv.keys_.num_bytes());
  for (std::int64_t head = 0; head < shape.num_kv_heads; ++head) {
    spans[static_cast<std::size_t>(head)] = {head * capacity, 0, capacity};
  }
  kv.spans_ = spans;
  return kv;
}

void LayerKv::advance(std::int64_t rows) {
  for (HeadSpan& head : spans_) {
    head.len += rows;
    TIDEKV_CHECK_OP(head.len, <=, head.capacity);
  }
}

void LayerKv::adopt(std::span<HeadSpan> spans, Component from, Component to) {
  std::copy(spans_.begin(), spans_.end(), spans.begin());
  spans_ = spans;
  buffer_.retag(from, to);
}

}  // namespace tidekv
