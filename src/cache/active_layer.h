// The active layer: its KV before a cut, and the last W queries. Holds the whole prompt and dies at
// the layer boundary, which is what "delayed eviction" means (Alg. 1, lines 3-9); or, where caches
// are cut as chunks pass, what the cache holds and one chunk.
#pragma once

#include "cache/layer_kv.h"

namespace tidekv {

// What is to be kept of the queries that pass through the layer.
struct QueriesWanted {
  std::int64_t q_dim = 0;
  std::int64_t window_len = 0;  // the last ones; 0: none
  bool window_lse = false;      // and what attention leaves of them, which pass 1 would compute
  bool moments = false;         // of all from position `first` on
  std::int64_t first = 0;
  DeviceView inverse_freq = {};  // [1, head_dim / 2] f32, by which they were rotated
};

// Moments of the queries that passed (Backend::observe_queries), and what turns them to the
// positions ahead.
struct ObservedQueries {
  DeviceView moments;      // no rows: nobody asked
  std::int64_t first = 0;  // position of the first that counts
  std::int64_t end = 0;    // behind the last
  DeviceView inverse_freq;

  std::int64_t count() const { return end > first ? end - first : 0; }
};

class ActiveLayer {
 public:
  // With `grows` the buffer has room for generated rows behind the prompt, so that a layer which
  // evicts nothing can become its own compact cache without a copy.
  static Result<ActiveLayer> open(Backend& backend, const CacheShape& shape,
                                  const QueriesWanted& wanted, bool grows,
                                  const HeadStorage& storage);

  // Holds the rows of `cached`, and has room for those of `chunk_len` tokens behind them, the last
  // of which stands before position `end`.
  struct Chunk {
    std::int64_t chunk_len = 0;
    std::int64_t end = 0;
    QueriesWanted wanted;  // a window of at most chunk_len
  };
  static Result<ActiveLayer> open_over(Backend& backend, const CacheShape& shape,
                                       const LayerKv& cached, const Chunk& chunk,
                                       const HeadStorage& storage);

  LayerKv& kv() { return kv_; }
  const LayerKv& kv() const { return kv_; }

  // Post-RoPE queries of the last W positions, [W, q_dim]; empty without a window.
  DeviceView window_queries() const { return window_; }
  // The last `count` of them: selectors of one prefill may look at windows of several lengths.
  DeviceView last_queries(std::int64_t count) const {
    return window_.rows_at(window_.rows() - count, count);
  }
  const ObservedQueries& observed() const { return observed_; }
  // Max and normaliser of those rows' attention, [2 * q_heads, W] f32 as of window_lse; empty where
  // attention does not run for all of them.
  DeviceView window_lse() const { return lse_; }
  // First position of the window: W before the end of the prompt or chunk.
  std::int64_t window_begin() const { return end_ - window_.rows(); }

 private:
  Status open_queries(Backend& backend, const CacheShape& shape, const QueriesWanted& wanted);

  LayerKv kv_;
  Buffer window_buffer_;
  DeviceView window_;
  Buffer moments_buffer_;
  ObservedQueries observed_;
  Buffer lse_buffer_;
  DeviceView lse_;
  std::int64_t end_ = 0;  // behind the last position
};

}  // namespace tidekv
