// What a layer keeps after eviction: retained KV rows in position order, their original positions,
// and room for generated rows.
#pragma once

#include "cache/active_layer.h"
#include "cache/retained.h"

namespace tidekv {

class CompactLayer {
 public:
  CompactLayer() = default;

  // Gathers the rows `retained` names, whose positions move in.
  static Result<CompactLayer> gather(Backend& backend, const CacheShape& shape,
                                     const ActiveLayer& active, Retained retained,
                                     std::span<HeadSpan> spans);

  // Keeps everything: the full KV itself becomes the cache.
  static CompactLayer keep_all(ActiveLayer active, std::span<HeadSpan> spans);

  LayerKv& kv() { return kv_; }
  const LayerKv& kv() const { return kv_; }

  // Rows each KV head retained from the prompt; generated rows do not count.
  std::span<const std::int64_t> retained_lens() const { return retained_.lens; }
  // Of all heads together.
  std::int64_t total_retained() const;
  bool keeps_all() const { return retained_.positions.rows() == 0; }
  // Empty when everything is kept (slot == position).
  HeadLists positions() const { return retained_.lists(); }

 private:
  LayerKv kv_;
  Retained retained_;
};

}  // namespace tidekv
