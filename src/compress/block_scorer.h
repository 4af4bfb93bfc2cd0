// Scores of the candidates of one layer, key block by key block (Alg. 2, pass 2): the dense tensor
// [H_q, W, S] never exists unless a block covers the prompt. Any block length gives the same bits.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/backend.h"
#include "cache/active_layer.h"
#include "compress/selector.h"

namespace tidekv {

// What is cut: the rows of one layer, and the newest queries where scores come from them.
struct CutRows {
  KvView kv;
  DeviceView queries;  // [W, q_heads * D]; no rows without a window
  // Their log-sum-exps and those of the rows before them, [2 * q_heads, >= W] f32 as of window_lse,
  // where attention left them; no rows: pass 1 finds them.
  DeviceView window_lse = {};
  ObservedQueries observed = {};
  bool heads_differ = false;  // an earlier cut may have left heads of unequal length
};

class BlockScorer {
 public:
  struct Options {
    std::int64_t num_q_heads = 0;
    std::int64_t key_block_len = 0;  // keys scored at once; rounded up to whole units
  };

  // Allocates the scratch of one block and, for heads that do not differ, runs pass 1. What `rows`
  // shows outlives the scorer.
  static Result<BlockScorer> open(Backend& backend, const ScoreRecipe& recipe, const CutRows& rows,
                                  const Options& options);

  const CutRows& rows() const { return rows_; }
  // Slots that may stay or go, [num_sinks, len - num_recent); of heads that differ those of one.
  KeyRange candidates_of(std::size_t head) const;
  // Of what is looked at.
  const KeyRange& candidates() const { return candidates_; }
  std::int64_t block_len() const { return block_len_; }

  // Heads that differ have candidates of their own: looks at this one alone from now on.
  void look_at(std::size_t head);

  // Scores of candidates `wanted`, at most block_len() of them: [heads looked at, wanted.len()]
  // f32. The view is good until the next call.
  DeviceView score(const KeyRange& wanted);

  // visit(range, scores) for every block, in order; stops at the first error.
  template <typename Visit>
  Status for_each_block(const Visit& visit) {
    for (std::int64_t begin = candidates_.begin; begin < candidates_.end; begin += block_len_) {
      const KeyRange range{begin, std::min(begin + block_len_, candidates_.end)};
      TIDEKV_TRY(visit(range, score(range)));
    }
    return Ok{};
  }

 private:
  struct Scratch {
    Buffer buffer;
    std::int64_t rows = 0;
    // The first `cols` columns' worth of every row, rows packed.
    DeviceView cols(std::int64_t cols) const { return buffer.view(DType::kF32, rows, cols); }
  };
  static Result<Scratch> scratch(Backend& backend, std::int64_t rows, std::int64_t cols);
  // For `num_kv_heads` looked at together, whose candidates end at `most_end` or before.
  Status open_scratch(std::int64_t num_kv_heads, std::int64_t num_q_heads, std::int64_t most_end);
  // What does not depend on the block, of the heads from `first_head` on that are looked at: pass
  // 1, or the mean direction.
  void prepare(std::int64_t first_head);
  void copy_lse(std::int64_t first_head);
  // Neighbours pool up to the window, even those that are retained anyway.
  std::int64_t pooled_end() const;
  void score_by_attention(const KeyRange& wanted, DeviceView scores);

  Backend* backend_ = nullptr;
  ScoreRecipe recipe_;
  CutRows rows_;
  KvView kv_;           // of what is looked at
  DeviceView queries_;  // the same
  KeyRange candidates_;
  std::int64_t block_len_ = 0;
  Buffer head_queries_;  // [W, group * D] of one head
  Scratch lse_;          // [2 * num_q_heads, W]: pass 1, Eqs. (4)-(6)
  Scratch weights_;      // [num_q_heads * W, block and halo]
  Scratch raw_;          // [num_kv_heads, block and halo]
  Scratch anchors_;      // [num_kv_heads, head_dim]: mean directions
  Scratch expected_;     // [num_q_heads * (head_dim + 1), head_dim]: moments of queries to come
  Scratch scores_;       // [num_kv_heads, block]
};

}  // namespace tidekv
