#include "cache/compact_layer.h"

#include <utility>

namespace tidekv {

Result<CompactLayer> CompactLayer::gather(Backend& backend, const CacheShape& shape,
                                          const ActiveLayer& active, Buffer positions_buffer,
                                          DeviceView positions, std::span<HeadSpan> spans) {
  CompactLayer layer;
  layer.num_retained_ = positions.cols();
  layer.positions_buffer_ = std::move(positions_buffer);
  layer.positions_ = positions;
  TIDEKV_ASSIGN(layer.kv_, LayerKv::allocate(backend, shape, Component::kCompactCache,
                                             layer.num_retained_, shape.growth_len, spans));
  backend.gather_rows(active.kv().view(), positions, layer.kv_.view());
  layer.kv_.advance(layer.num_retained_);
  return layer;
}

CompactLayer CompactLayer::keep_all(ActiveLayer active, std::span<HeadSpan> spans) {
  CompactLayer layer;
  layer.num_retained_ = active.prompt_len();
  layer.kv_ = std::move(active.kv());
  layer.kv_.adopt(spans, Component::kFullKv, Component::kCompactCache);
  return layer;
}

}  // namespace tidekv
