// Dense SnapKV selection in double: all attention weights of the window at once, pooled over the
// whole prefix, sorted. The ground truth for the streaming compressor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oracle/attention_ops.h"

namespace tidekv::oracle {

struct DenseSnapKvOptions {
  std::int64_t budget = 0;      // tokens kept per KV head, window and sinks included
  std::int64_t num_recent = 0;  // newest tokens that always stay
  std::int64_t num_sinks = 0;   // first tokens that always stay
  PoolRecipe pool;
};

struct DenseSelection {
  // One vector per KV head, over the prefix [0, prompt_len - num_recent).
  std::vector<std::vector<double>> scores;
  std::vector<std::vector<double>> score_bounds;  // how far rounding may take a float score
  // One vector per KV head, ascending; the whole prompt where the budget covers it.
  std::vector<std::vector<std::int32_t>> positions;
};

// `window_queries` [W, q_heads * D] are the newest rows; every head of `kv` holds the whole prompt.
DenseSelection dense_snapkv(const HostTensor& window_queries, const Kv& kv,
                            const DenseSnapKvOptions& options);

// The same for keys scored by minus their lengths (Knorm).
DenseSelection dense_knorm(const Kv& kv, const DenseSnapKvOptions& options);

// The same for keys scored by how little they point where their mean does (KeyDiff).
DenseSelection dense_key_difference(const Kv& kv, const DenseSnapKvOptions& options);

// The same for keys scored by the attention to expect of queries like q [rows, q_heads * D], at
// positions first, first + 1, ...
DenseSelection dense_expected_attention(const HostTensor& q, const HostTensor& inverse_freq,
                                        Position first, const Kv& kv,
                                        const DenseSnapKvOptions& options);

// True where `retained` (ascending) is the oracle's choice for this head but for swaps of
// candidates whose scores rounding cannot tell apart.
bool explained_by_rounding(const DenseSelection& wanted, std::size_t head,
                           std::span<const std::int32_t> retained);

}  // namespace tidekv::oracle
