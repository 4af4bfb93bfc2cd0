// What a layer keeps after eviction: retained KV rows in position order, their original positions,
// and room for generated rows.
#pragma once

#include "cache/active_layer.h"

namespace tidekv {

class CompactLayer {
 public:
  CompactLayer() = default;

  // Gathers the rows `retained` names. `positions` [num_kv_heads, K] i32, ascending in each head,
  // lives in `positions_buffer`, which moves in.
  static Result<CompactLayer> gather(Backend& backend, const CacheShape& shape,
                                     const ActiveLayer& active, Buffer positions_buffer,
                                     DeviceView positions, std::span<HeadSpan> spans);

  // Keeps everything: the full KV itself becomes the cache.
  static CompactLayer keep_all(ActiveLayer active, std::span<HeadSpan> spans);

  LayerKv& kv() { return kv_; }
  const LayerKv& kv() const { return kv_; }

  // Rows retained per head from the prompt; generated rows do not count.
  std::int64_t num_retained() const { return num_retained_; }
  bool keeps_all() const { return positions_.rows() == 0; }
  // [num_kv_heads, num_retained] i32; empty when everything is kept (slot == position).
  DeviceView positions() const { return positions_; }

 private:
  LayerKv kv_;
  Buffer positions_buffer_;
  DeviceView positions_;
  std::int64_t num_retained_ = 0;
};

}  // namespace tidekv
