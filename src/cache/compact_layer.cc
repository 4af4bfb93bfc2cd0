#include "cache/compact_layer.h"

#include <numeric>
#include <utility>

namespace tidekv {

Result<CompactLayer> CompactLayer::gather(Backend& backend, const CacheShape& shape,
                                          const ActiveLayer& active, Retained retained,
                                          std::span<HeadSpan> spans) {
  CompactLayer layer;
  layer.retained_ = std::move(retained);
  const LayerKv::Rows rows{layer.retained_.lens, shape.growth_len, Component::kCompactCache};
  TIDEKV_ASSIGN(layer.kv_, LayerKv::allocate(backend, shape, rows, spans));
  backend.gather_rows(active.kv().view(), layer.positions(), layer.kv_.view());
  layer.kv_.advance(layer.retained_lens());
  return layer;
}

CompactLayer CompactLayer::keep_all(ActiveLayer active, std::span<HeadSpan> spans) {
  CompactLayer layer;
  layer.retained_.lens.assign(spans.size(), active.prompt_len());
  layer.kv_ = std::move(active.kv());
  layer.kv_.adopt(spans, Component::kFullKv, Component::kCompactCache);
  return layer;
}

std::int64_t CompactLayer::total_retained() const {
  return std::accumulate(retained_.lens.begin(), retained_.lens.end(), std::int64_t{0});
}

}  // namespace tidekv
