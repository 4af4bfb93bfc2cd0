#include "cache/cache_manager.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tidekv {

CacheManager::CacheManager(Backend& backend, const CacheShape& shape)
    : backend_(&backend),
      shape_(shape),
      spans_(static_cast<std::size_t>(shape.num_layers * shape.num_kv_heads)),
      lens_(spans_.size()),
      active_spans_(static_cast<std::size_t>(shape.num_kv_heads)),
      active_lens_(active_spans_.size()),
      staged_spans_(active_spans_.size()),
      staged_lens_(active_spans_.size()),
      cut_lens_(active_spans_.size()) {
  layers_.reserve(static_cast<std::size_t>(shape.num_layers));
}

HeadStorage CacheManager::storage_of(std::int64_t layer) {
  const auto count = static_cast<std::size_t>(shape_.num_kv_heads);
  const std::size_t first = static_cast<std::size_t>(layer) * count;
  return {std::span(spans_).subspan(first, count), std::span(lens_).subspan(first, count)};
}

Result<ActiveLayer> CacheManager::open_active(const QueriesWanted& wanted, bool grows) {
  return ActiveLayer::open(*backend_, shape_, wanted, grows, active_storage());
}

Status CacheManager::commit(const ActiveLayer& active, Retained retained) {
  TIDEKV_CHECK_OP(num_committed(), <, shape_.num_layers);
  TIDEKV_ASSIGN(CompactLayer layer,
                CompactLayer::gather(*backend_, shape_, active, std::move(retained),
                                     storage_of(num_committed())));
  layers_.push_back(std::move(layer));
  return Ok{};
}

Status CacheManager::commit_copy(const ActiveLayer& active) {
  TIDEKV_CHECK_OP(num_committed(), <, shape_.num_layers);
  TIDEKV_ASSIGN(CompactLayer layer,
                (shape_.quantiser ? CompactLayer::quantise_all : CompactLayer::copy_all)(
                    *backend_, shape_, active, storage_of(num_committed())));
  layers_.push_back(std::move(layer));
  return Ok{};
}

void CacheManager::commit_all(ActiveLayer active) {
  TIDEKV_CHECK_OP(num_committed(), <, shape_.num_layers);
  layers_.push_back(CompactLayer::keep_all(std::move(active), storage_of(num_committed())));
}

Status CacheManager::open_all(std::span<const std::int64_t> budgets, std::int64_t most_rows) {
  TIDEKV_CHECK_OP(budgets.size(), ==, shape_.num_layers);
  if (shape_.offload_chunk_len > 0) {
    return open_offloaded();
  }
  for (const std::int64_t budget : budgets) {
    TIDEKV_ASSIGN(CompactLayer layer,
                  CompactLayer::open(*backend_, shape_, std::min(budget, shape_.prompt_len),
                                     budget < most_rows ? budget : 0, storage_of(num_committed())));
    layers_.push_back(std::move(layer));
  }
  return Ok{};
}

Status CacheManager::open_offloaded() {
  const std::int64_t layer_rows = 2 * shape_.num_kv_heads * (shape_.prompt_len + shape_.growth_len);
  TIDEKV_ASSIGN(ring_, OffloadRing::open(*backend_, shape_, active_spans_));
  TIDEKV_ASSIGN(const PoolView rows,
                backend_->open_pool(shape_.dtype, shape_.num_layers * layer_rows, shape_.head_dim));
  for (std::int64_t layer = 0; layer < shape_.num_layers; ++layer) {
    layers_.push_back(CompactLayer::open_offloaded(
        *backend_, *ring_, rows.rows_at(layer * layer_rows, layer_rows), storage_of(layer)));
  }
  return Ok{};
}

Result<ActiveLayer> CacheManager::open_active_over(std::int64_t layer,
                                                   const ActiveLayer::Chunk& chunk) {
  const LayerKv& cached = layers_[static_cast<std::size_t>(layer)].kv();
  return ActiveLayer::open_over(*backend_, shape_, cached, chunk, active_storage());
}

void CacheManager::count_appended(std::int64_t layer, std::int64_t rows) {
  layers_[static_cast<std::size_t>(layer)].count_appended(rows);
}

void CacheManager::replace(std::int64_t layer, const ActiveLayer& active, const Retained& slots,
                           Position first) {
  layers_[static_cast<std::size_t>(layer)].replace(*backend_, active, slots, first);
}

void CacheManager::keep(std::int64_t layer, const Retained& slots, Position first) {
  layers_[static_cast<std::size_t>(layer)].keep(*backend_, slots, first);
}

}  // namespace tidekv
