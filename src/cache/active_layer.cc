#include "cache/active_layer.h"

#include <algorithm>

namespace tidekv {

Result<ActiveLayer> ActiveLayer::open(Backend& backend, const CacheShape& shape,
                                      const QueriesWanted& wanted, bool grows,
                                      const HeadStorage& storage) {
  ActiveLayer active;
  active.end_ = shape.prompt_len;
  std::fill(storage.lens.begin(), storage.lens.end(), shape.prompt_len);
  const LayerKv::Rows rows{storage.lens, grows ? shape.growth_len : 0, Component::kFullKv};
  TIDEKV_ASSIGN(active.kv_, LayerKv::allocate(backend, shape, rows, storage.spans));
  TIDEKV_TRY(active.open_queries(backend, shape, wanted));
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
  TIDEKV_TRY(active.open_queries(backend, shape, chunk.wanted));
  return active;
}

Status ActiveLayer::open_queries(Backend& backend, const CacheShape& shape,
                                 const QueriesWanted& wanted) {
  if (wanted.window_len > 0) {
    const std::int64_t bytes = wanted.window_len * wanted.q_dim * size_of(shape.dtype);
    TIDEKV_ASSIGN(window_buffer_, backend.allocate({{Component::kCompressionTemp, bytes}}));
    window_ = window_buffer_.view(shape.dtype, wanted.window_len, wanted.q_dim);
  }
  if (wanted.window_len > 0 && wanted.window_lse) {
    const std::int64_t rows = 2 * (wanted.q_dim / shape.head_dim);
    const std::int64_t bytes = rows * wanted.window_len * size_of(DType::kF32);
    TIDEKV_ASSIGN(lse_buffer_, backend.allocate({{Component::kCompressionTemp, bytes}}));
    lse_ = lse_buffer_.view(DType::kF32, rows, wanted.window_len);
  }
  if (wanted.moments) {
    const std::int64_t rows = wanted.q_dim / shape.head_dim * (shape.head_dim + 1);
    const std::int64_t bytes = rows * shape.head_dim * size_of(DType::kF32);
    TIDEKV_ASSIGN(moments_buffer_, backend.allocate({{Component::kCompressionTemp, bytes}}));
    observed_ = {moments_buffer_.view(DType::kF32, rows, shape.head_dim), wanted.first, end_,
                 wanted.inverse_freq};
  }
  return Ok{};
}

}  // namespace tidekv
