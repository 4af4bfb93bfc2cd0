#include "cache/compact_layer.h"

#include <numeric>
#include <utility>
#include <vector>

#include "base/check.h"

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

Result<CompactLayer> CompactLayer::copy_all(Backend& backend, const CacheShape& shape,
                                            const ActiveLayer& active, std::span<HeadSpan> spans) {
  CompactLayer layer;
  for (const HeadSpan& head : active.kv().heads()) {
    layer.retained_.lens.push_back(head.len);
  }
  const LayerKv::Rows rows{layer.retained_.lens, shape.growth_len, Component::kCompactCache};
  TIDEKV_ASSIGN(layer.kv_, LayerKv::allocate(backend, shape, rows, spans));
  layer.kv_.copy_rows(backend, active.kv());
  return layer;
}

CompactLayer CompactLayer::keep_all(ActiveLayer active, std::span<HeadSpan> spans) {
  CompactLayer layer;
  for (const HeadSpan& head : active.kv().heads()) {
    layer.retained_.lens.push_back(head.len);
  }
  layer.kv_ = std::move(active.kv());
  layer.kv_.adopt(spans, Component::kFullKv, Component::kCompactCache);
  return layer;
}

Result<CompactLayer> CompactLayer::open(Backend& backend, const CacheShape& shape,
                                        std::int64_t rows, std::int64_t cut_rows,
                                        std::span<HeadSpan> spans) {
  CompactLayer layer;
  layer.growth_len_ = shape.growth_len;
  layer.retained_.lens.assign(spans.size(), 0);
  const std::vector<std::int64_t> lens(spans.size(), rows);
  TIDEKV_ASSIGN(
      layer.kv_,
      LayerKv::allocate(backend, shape, {lens, shape.growth_len, Component::kCompactCache}, spans));
  if (cut_rows > 0) {
    const std::int64_t bytes = shape.num_kv_heads * cut_rows * size_of(DType::kI32);
    TIDEKV_ASSIGN(layer.retained_.buffer, backend.allocate({{Component::kCachePositions, bytes}}));
  }
  return layer;
}

void CompactLayer::count_appended(std::int64_t rows) {
  TIDEKV_CHECK(keeps_all());
  for (std::int64_t& len : retained_.lens) {
    len += rows;
  }
}

void CompactLayer::replace(Backend& backend, const ActiveLayer& active, const Retained& slots,
                           Position first) {
  kv_.lay_out(slots.lens, growth_len_);
  backend.gather_rows(active.kv().view(), slots.lists(), kv_.view());
  kv_.advance(slots.lens);
  rename(backend, slots, first);
}

void CompactLayer::keep(Backend& backend, const Retained& slots, Position first) {
  backend.keep_rows(slots.lists(), kv_.view());
  kv_.shrink(slots.lens);
  rename(backend, slots, first);
}

void CompactLayer::rename(Backend& backend, const Retained& slots, Position first) {
  if (!keeps_all()) {  // before the first cut slots are positions
    backend.slots_to_positions(positions(), first, slots.lists());
  }
  retained_.lens = slots.lens;
  retained_.positions = retained_.buffer.view(DType::kI32, 1, slots.positions.cols());
  backend.copy(slots.positions, retained_.positions);
}

std::int64_t CompactLayer::total_retained() const {
  return std::accumulate(retained_.lens.begin(), retained_.lens.end(), std::int64_t{0});
}

}  // namespace tidekv
