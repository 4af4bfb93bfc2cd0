// The active layer: full prompt KV and the last W queries. Dies at the layer boundary, which is
// what "delayed eviction" means (Alg. 1, lines 3-9).
#pragma once

#include "cache/layer_kv.h"

namespace tidekv {

class ActiveLayer {
 public:
  // `window_len` observation queries of q_dim values each are kept; 0 for none. With `grows` the
  // buffer has room for generated rows behind the prompt, so that a layer which evicts nothing can
  // become its own compact cache without a copy.
  static Result<ActiveLayer> open(Backend& backend, const CacheShape& shape,
                                  std::int64_t window_len, std::int64_t q_dim, bool grows,
                                  std::span<HeadSpan> spans);

  std::int64_t prompt_len() const { return prompt_len_; }
  LayerKv& kv() { return kv_; }
  const LayerKv& kv() const { return kv_; }

  // Post-RoPE queries of the last W prompt positions, [W, q_dim]; empty without a window.
  DeviceView window_queries() const { return window_; }
  // First position of the window: prompt_len - W (prompt_len without one).
  std::int64_t window_begin() const { return prompt_len_ - window_.rows(); }

 private:
  LayerKv kv_;
  Buffer window_buffer_;
  DeviceView window_;
  std::int64_t prompt_len_ = 0;
};

}  // namespace tidekv
