#include "cache/active_layer.h"

#include <vector>

namespace tidekv {

Result<ActiveLayer> ActiveLayer::open(Backend& backend, const CacheShape& shape,
                                      std::int64_t window_len, std::int64_t q_dim, bool grows,
                                      std::span<HeadSpan> spans) {
  ActiveLayer active;
  active.end_ = shape.prompt_len;
  const std::vector<std::int64_t> lens(spans.size(), shape.prompt_len);
  const LayerKv::Rows rows{lens, grows ? shape.growth_len : 0, Component::kFullKv};
  TIDEKV_ASSIGN(active.kv_, LayerKv::allocate(backend, shape, rows, spans));
  TIDEKV_TRY(active.open_window(backend, shape.dtype, window_len, q_dim));
  return active;
}

Result<ActiveLayer> ActiveLayer::open_over(Backend& backend, const CacheShape& shape,
                                           const LayerKv& cached, const Chunk& chunk,
                                           std::span<HeadSpan> spans) {
  ActiveLayer active;
  active.end_ = chunk.end;
  std::vector<std::int64_t> lens;
  for (const HeadSpan& head : cached.heads()) {
    lens.push_back(head.len + chunk.chunk_len);
  }
  TIDEKV_ASSIGN(active.kv_,
                LayerKv::allocate(backend, shape, {lens, 0, Component::kFullKv}, spans));
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
