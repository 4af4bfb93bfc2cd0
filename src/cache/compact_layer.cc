#include "cache/compact_layer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace tidekv {

Result<CompactLayer> CompactLayer::gather(Backend& backend, const CacheShape& shape,
                                          const ActiveLayer& active, Retained retained,
                                          const HeadStorage& storage) {
  CompactLayer layer;
  layer.lens_ = storage.lens;
  std::copy(retained.lens.begin(), retained.lens.end(), layer.lens_.begin());
  layer.positions_buffer_ = std::move(retained.buffer);
  layer.positions_ = retained.positions;
  const LayerKv::Rows rows{layer.lens_, shape.growth_len, Component::kCompactCache};
  TIDEKV_ASSIGN(layer.kv_, LayerKv::allocate(backend, shape, rows, storage.spans));
  backend.gather_rows(active.kv().view(), layer.positions(), layer.kv_.view());
  layer.kv_.advance(layer.retained_lens());
  return layer;
}

Result<CompactLayer> CompactLayer::copy_all(Backend& backend, const CacheShape& shape,
                                            const ActiveLayer& active, const HeadStorage& storage) {
  CompactLayer layer;
  layer.lens_ = storage.lens;
  layer.count_all(active);
  const LayerKv::Rows rows{layer.lens_, shape.growth_len, Component::kCompactCache};
  TIDEKV_ASSIGN(layer.kv_, LayerKv::allocate(backend, shape, rows, storage.spans));
  layer.kv_.copy_rows(backend, active.kv());
  return layer;
}

Result<CompactLayer> CompactLayer::quantise_all(Backend& backend, const CacheShape& shape,
                                                const ActiveLayer& active,
                                                const HeadStorage& storage) {
  CompactLayer layer;
  layer.lens_ = storage.lens;
  layer.count_all(active);
  TIDEKV_ASSIGN(layer.quantised_, QuantisedKv::allocate(backend, shape, storage.spans));
  layer.quantised_->fill(backend, active.kv().view());
  return layer;
}

CompactLayer CompactLayer::keep_all(ActiveLayer active, const HeadStorage& storage) {
  CompactLayer layer;
  layer.lens_ = storage.lens;
  layer.count_all(active);
  layer.kv_ = std::move(active.kv());
  layer.kv_.adopt(storage.spans, Component::kFullKv, Component::kCompactCache);
  return layer;
}

void CompactLayer::count_all(const ActiveLayer& active) {
  for (std::size_t head = 0; head < lens_.size(); ++head) {
    lens_[head] = active.kv().heads()[head].len;
  }
}

Result<CompactLayer> CompactLayer::open(Backend& backend, const CacheShape& shape,
                                        std::int64_t rows, std::int64_t cut_rows,
                                        const HeadStorage& storage) {
  CompactLayer layer;
  layer.growth_len_ = shape.growth_len;
  layer.lens_ = storage.lens;
  std::fill(layer.lens_.begin(), layer.lens_.end(), rows);
  const LayerKv::Rows room{layer.lens_, shape.growth_len, Component::kCompactCache};
  TIDEKV_ASSIGN(layer.kv_, LayerKv::allocate(backend, shape, room, storage.spans));
  std::fill(layer.lens_.begin(), layer.lens_.end(), std::int64_t{0});
  if (cut_rows > 0) {
    const std::int64_t bytes = shape.num_kv_heads * cut_rows * size_of(DType::kI32);
    TIDEKV_ASSIGN(layer.positions_buffer_, backend.allocate({{Component::kCachePositions, bytes}}));
  }
  return layer;
}

CompactLayer CompactLayer::open_offloaded(Backend& backend, OffloadRing& ring, PoolView rows,
                                          const HeadStorage& storage) {
  CompactLayer layer;
  layer.lens_ = storage.lens;
  std::fill(layer.lens_.begin(), layer.lens_.end(), std::int64_t{0});
  layer.offloaded_.emplace(backend, ring, rows, static_cast<std::int64_t>(layer.lens_.size()));
  return layer;
}

AttendedKv& CompactLayer::attended() {
  if (quantised_) {
    return *quantised_;
  }
  if (offloaded_) {
    return *offloaded_;
  }
  return kv_;
}

void CompactLayer::settle(Backend& backend) {
  if (quantised_) {
    quantised_->settle(backend);
  }
}

void CompactLayer::count_appended(std::int64_t rows) {
  TIDEKV_CHECK(keeps_all());
  for (std::int64_t& len : lens_) {
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
  std::copy(slots.lens.begin(), slots.lens.end(), lens_.begin());
  positions_ = positions_buffer_.view(DType::kI32, 1, slots.positions.cols());
  backend.copy(slots.positions, positions_);
}

std::int64_t CompactLayer::total_retained() const {
  return std::accumulate(lens_.begin(), lens_.end(), std::int64_t{0});
}

}  // namespace tidekv
