// D. Decode adapter: shows the compact caches to generation, at true positions.
//
// A generated token's position continues from the prompt length, not from the number of retained
// rows: evicted positions leave holes, and RoPE keys carry their own place.
#pragma once

#include "cache/cache_manager.h"

namespace tidekv {

class DecodeAdapter {
 public:
  // All layers of `cache` are committed.
  explicit DecodeAdapter(CacheManager& cache) : cache_(&cache), next_(cache.shape().prompt_len) {}

  // Position of the token to be fed next.
  Position next_position() const { return Position{static_cast<std::int32_t>(next_)}; }
  // True while there is room for one more row in every head.
  bool has_room() const { return next_ < cache_->shape().prompt_len + cache_->shape().growth_len; }
  LayerKv& layer(std::int64_t index) {
    return cache_->layers_[static_cast<std::size_t>(index)].kv();
  }
  // The token at next_position() has gone through every layer.
  void advance() { ++next_; }

 private:
  CacheManager* cache_;
  std::int64_t next_;
};

}  // namespace tidekv
