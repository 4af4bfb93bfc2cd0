// Scores of the candidates of one layer, key block by key block (Alg. 2, pass 2): the dense tensor
// [H_q, W, S] never exists unless a block covers the prompt. Any block length gives the same bits.
#pragma once

#include <cstdint>

#include "cache/active_layer.h"
#include "compress/selector.h"

namespace tidekv {

class BlockScorer {
 public:
  struct Options {
    std::int64_t num_q_heads = 0;
    std::int64_t key_block_len = 0;  // keys scored at once; rounded up to whole units
  };

  // Allocates the scratch of one block and runs pass 1, where the source has one. `active` outlives
  // the scorer.
  static Result<BlockScorer> open(Backend& backend, const ScoreRecipe& recipe,
                                  const ActiveLayer& active, const Options& options);

  // Slots [num_sinks, S - num_recent).
  const KeyRange& candidates() const { return candidates_; }
  std::int64_t block_len() const { return block_len_; }

  // Scores of candidates `wanted`, at most block_len() of them: [num_kv_heads, wanted.len()] f32.
  // The view is good until the next call.
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
  Status open_attention(std::int64_t num_q_heads);  // pass 1
  void score_by_attention(const KeyRange& wanted, DeviceView scores);

  Backend* backend_ = nullptr;
  ScoreRecipe recipe_;
  KvView kv_;
  DeviceView queries_;
  KeyRange candidates_;
  std::int64_t block_len_ = 0;
  Scratch lse_;      // [2 * num_q_heads, W]: pass 1, Eqs. (4)-(6)
  Scratch weights_;  // [num_q_heads * W, block and halo]
  Scratch raw_;      // [num_kv_heads, block and halo]
  Scratch scores_;   // [num_kv_heads, block]
};

}  // namespace tidekv
