#include "cache/cache_manager.h"

#include <utility>

#include "base/check.h"

namespace tidekv {

CacheManager::CacheManager(Backend& backend, const CacheShape& shape)
    : backend_(&backend),
      shape_(shape),
      spans_(static_cast<std::size_t>(shape.num_layers * shape.num_kv_heads)),
      active_spans_(static_cast<std::size_t>(shape.num_kv_heads)) {
  layers_.reserve(static_cast<std::size_t>(shape.num_layers));
}

std::span<HeadSpan> CacheManager::spans_of(std::int64_t layer) {
  return std::span(spans_).subspan(static_cast<std::size_t>(layer * shape_.num_kv_heads),
                                   static_cast<std::size_t>(shape_.num_kv_heads));
}

Result<ActiveLayer> CacheManager::open_active(std::int64_t window_len, std::int64_t q_dim,
                                              bool grows) {
  return ActiveLayer::open(*backend_, shape_, window_len, q_dim, grows, active_spans_);
}

Status CacheManager::commit(const ActiveLayer& active, Retained retained) {
  TIDEKV_CHECK_OP(num_committed(), <, shape_.num_layers);
  TIDEKV_ASSIGN(CompactLayer layer,
                CompactLayer::gather(*backend_, shape_, active, std::move(retained),
                                     spans_of(num_committed())));
  layers_.push_back(std::move(layer));
  return Ok{};
}

void CacheManager::commit_all(ActiveLayer active) {
  TIDEKV_CHECK_OP(num_committed(), <, shape_.num_layers);
  layers_.push_back(CompactLayer::keep_all(std::move(active), spans_of(num_committed())));
}

}  // namespace tidekv
