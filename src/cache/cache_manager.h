// C. Cross-layer cache manager: owns the compact caches of finished layers, and hands out the one
// active layer. commit() is the only way in.
#pragma once

#include <vector>

#include "cache/compact_layer.h"

namespace tidekv {

class CacheManager {
 public:
  CacheManager(Backend& backend, const CacheShape& shape);

  const CacheShape& shape() const { return shape_; }

  // Opens the active layer. The one before must have been committed or dropped.
  Result<ActiveLayer> open_active(std::int64_t window_len, std::int64_t q_dim, bool grows);

  // Commits layer number num_committed(): gathers what is retained from `active`, which the caller
  // then releases.
  Status commit(const ActiveLayer& active, Retained retained);
  // Commits a layer that evicts nothing.
  void commit_all(ActiveLayer active);

  std::int64_t num_committed() const { return static_cast<std::int64_t>(layers_.size()); }
  const CompactLayer& layer(std::int64_t index) const {
    return layers_[static_cast<std::size_t>(index)];
  }

 private:
  friend class DecodeAdapter;
  std::span<HeadSpan> spans_of(std::int64_t layer);

  Backend* backend_;
  CacheShape shape_;
  std::vector<HeadSpan> spans_;         // [num_layers, num_kv_heads]
  std::vector<HeadSpan> active_spans_;  // [num_kv_heads]
  std::vector<CompactLayer> layers_;    // room for all from the start
};

}  // namespace tidekv
