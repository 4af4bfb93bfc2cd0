// C. Cross-layer cache manager: owns the compact caches of finished layers, and hands out the one
// active layer. commit() is the only way in; or all caches are there from the start and are cut as
// chunks pass.
#pragma once

#include <optional>
#include <vector>

#include "cache/compact_layer.h"

namespace tidekv {

class CacheManager {
 public:
  CacheManager(Backend& backend, const CacheShape& shape);

  const CacheShape& shape() const { return shape_; }

  // Opens the active layer. The one before must have been committed or dropped.
  Result<ActiveLayer> open_active(const QueriesWanted& wanted, bool grows);

  // Commits layer number num_committed(): gathers what is retained from `active`, which the caller
  // then releases.
  Status commit(const ActiveLayer& active, Retained retained);
  // Commits a copy of the whole layer, which others still need; in few bits if the cache is.
  Status commit_copy(const ActiveLayer& active);
  // Commits a layer that evicts nothing.
  void commit_all(ActiveLayer active);

  // --- caches that are there from the start ---

  // Opens every layer's cache: no head ever keeps more than budgets[layer] of the `most_rows` rows
  // that come. In the offload pool if the cache's shape says so: then all are kept.
  Status open_all(std::span<const std::int64_t> budgets, std::int64_t most_rows);
  // The active layer over what the layer's cache holds.
  Result<ActiveLayer> open_active_over(std::int64_t layer, const ActiveLayer::Chunk& chunk);
  // The cache itself, for rows that fit it; count_appended() afterwards.
  AttendedKv& growing(std::int64_t layer) {
    return layers_[static_cast<std::size_t>(layer)].attended();
  }
  void count_appended(std::int64_t layer, std::int64_t rows);
  // See CompactLayer.
  void replace(std::int64_t layer, const ActiveLayer& active, const Retained& slots,
               Position first);
  void keep(std::int64_t layer, const Retained& slots, Position first);

  // Room for the lengths that a cut leaves the heads, [num_kv_heads]; the next cut takes it again.
  std::span<std::int64_t> cut_lens() { return cut_lens_; }

  // For rows of the active layer beside its cache.
  HeadStorage staged_storage() { return {staged_spans_, staged_lens_}; }

  std::int64_t num_committed() const { return static_cast<std::int64_t>(layers_.size()); }
  const CompactLayer& layer(std::int64_t index) const {
    return layers_[static_cast<std::size_t>(index)];
  }

 private:
  friend class DecodeAdapter;
  HeadStorage storage_of(std::int64_t layer);
  Status open_offloaded();
  HeadStorage active_storage() { return {active_spans_, active_lens_}; }

  Backend* backend_;
  CacheShape shape_;
  std::vector<HeadSpan> spans_;            // [num_layers, num_kv_heads]
  std::vector<std::int64_t> lens_;         // the same
  std::vector<HeadSpan> active_spans_;     // [num_kv_heads]
  std::vector<std::int64_t> active_lens_;  // the same
  std::vector<HeadSpan> staged_spans_;     // the same
  std::vector<std::int64_t> staged_lens_;  // the same
  std::vector<std::int64_t> cut_lens_;     // the same
  std::optional<OffloadRing> ring_;
  std::vector<CompactLayer> layers_;  // room for all from the start
};

}  // namespace tidekv
