#include "cache/active_layer.h"

#include <vector>

namespace tidekv {

Result<ActiveLayer> ActiveLayer::open(Backend& backend, const CacheShape& shape,
                                      std::int64_t window_len, std::int64_t q_dim, bool grows,
                                      std::span<HeadSpan> spans) {
  ActiveLayer active;
  active.prompt_len_ = shape.prompt_len;
  const std::vector<std::int64_t> lens(spans.size(), shape.prompt_len);
  const LayerKv::Rows rows{lens, grows ? shape.growth_len : 0, Component::kFullKv};
  TIDEKV_ASSIGN(active.kv_, LayerKv::allocate(backend, shape, rows, spans));
  if (window_len > 0) {
    const std::int64_t bytes = window_len * q_dim * size_of(shape.dtype);
    TIDEKV_ASSIGN(active.window_buffer_, backend.allocate({{Component::kCompressionTemp, bytes}}));
    active.window_ = active.window_buffer_.view(shape.dtype, window_len, q_dim);
  }
  return active;
}

}  // namespace tidekv
