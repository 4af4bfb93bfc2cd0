#include "cache/active_layer.h"

#include <algorithm>

namespace tidekv {

Result<ActiveLayer> ActiveLayer::open(Backend& backend, const CacheShape& shape,
                                      std::int64_t window_len, std::int64_t q_dim, bool grows,
                                      const HeadStorage& storage) {
  ActiveLayer active;
  active.end_ = shape.prompt_len;
  std::fill(storage.lens.begin(), storage.lens.end(), shape.prompt_len);
  const LayerKv::Rows rows{storage.lens, grows ? shape.growth_len : 0, Component::kFullKv};
  TIDEKV_ASSIGN(active.kv_, LayerKv::allocate(backend, shape, rows, storage.spans));
  TIDEKV_TRY(active.open_window(backend, shape.dtype, window_len, q_dim));
  return active;
}

Result<ActiveLayer> ActiveLayer::open_over(Backend& backend, const CacheShape& shape,
                                           const LayerKv& cached, const Chunk& chunk,
                                           const HeadStorage& storage) {
  ActiveLayer active;
  active.end_ = chunk.end;
  for (std::size_t head = 0; head < storage.lens.size(); ++head) {
    storage.lens[head] = cached.heads()[head].len + chunk.chunk_len;
  }
  const LayerKv::Rows rows{storage.lens, 0, Component::kFullKv};
  TIDEKV_ASSIGN(active.kv_, LayerKv::allocate(backend, shape, rows, storage.spans));
  active.kv_.copy_rows(backend, cached);
  TIDEKV_TRY(active.open_window(backend, shape.dtype, chunk.window_len, chunk.q_dim));
  return active;
}

Status ActiveLayer::open_window(Backend& backend, DType dtype, std::int64_t window_len,
                                std::int64_t q_dim) {
  if (window_len > 0) {
    const std::int64_t bytes = window_len * q_dim * size_of(dtype);
    TIDEKV_ASSIGN(window_buffer_, backend.allocate({{Component::kCompressionTemp, bytes}}));
    window_ = window_buffer_.view(dtype, window_len, q_dim);
  }
  return Ok{};
}

}  // namespace tidekv
