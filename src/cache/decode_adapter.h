// D. Decode adapter: shows the compact caches to generation, at true positions.
//
// A generated token's position continues from the prompt length, not from the number of retained
// rows: evicted positions leave holes, and RoPE keys carry their own place.
#pragma once

#include "cache/cache_manager.h"

namespace tidekv {

class DecodeAdapter {
 public:
  // All layers of `cache` are committed; at most `most_tokens` will be fed.
  DecodeAdapter(CacheManager& cache, std::int64_t most_tokens)
      : cache_(&cache),
        next_(cache.shape().prompt_len),
        end_(cache.shape().prompt_len + most_tokens) {}

  // Position of the token to be fed next.
  Position next_position() const { return Position{static_cast<std::int32_t>(next_)}; }
  // True while one more token may be fed.
  bool has_room() const { return next_ < end_; }
  AttendedKv& layer(std::int64_t index) { return compact(index).attended(); }
  // That token has attended in this layer.
  void settle(Backend& backend, std::int64_t index) { compact(index).settle(backend); }
  // The token at next_position() has gone through every layer.
  void advance() { ++next_; }

 private:
  CompactLayer& compact(std::int64_t index) {
    return cache_->layers_[static_cast<std::size_t>(index)];
  }

  CacheManager* cache_;
  std::int64_t next_;
  std::int64_t end_;
};

}  // namespace tidekv
