// B. Layer-end compressor (Alg. 2): two passes over key blocks, exact top-k, gather.
//
// Pass 1 finds the log-sum-exp of each window row; pass 2 forms normalised weights block by block,
// pools them and offers the scores to a top-k per KV head (BlockScorer). With key_block_len the
// prompt's length scoring is dense, as the matched control's: both share every operation, so they
// retain the same rows. Temp does not grow with the prompt.
#pragma once

#include <cstdint>

#include "cache/cache_manager.h"
#include "compress/block_scorer.h"
#include "compress/selector.h"

namespace tidekv {

// Sees pooled scores as they are made; for tests and digests. `scores` [num_kv_heads, range.len()].
class ScoreProbe {
 public:
  virtual ~ScoreProbe() = default;
  virtual void on_scores(std::int64_t layer, KeyRange range, DeviceView scores) = 0;
};

class Compressor {
 public:
  // `key_block_len` keys are scored at once; any value gives the same numbers.
  Compressor(Backend& backend, const ScoreRecipe& recipe, std::int64_t num_q_heads,
             std::int64_t key_block_len, ScoreProbe* probe)
      : backend_(&backend),
        recipe_(recipe),
        num_q_heads_(num_q_heads),
        key_block_len_(key_block_len),
        probe_(probe) {}

  // Compresses the active layer to `layer_budget` tokens per KV head and commits it. A budget
  // that covers the prompt evicts nothing.
  Status compress_and_commit(ActiveLayer active, std::int64_t layer_budget, CacheManager& cache);

  // The positions that stay of layer number `layer`; layer_budget * num_kv_heads of them.
  Result<Retained> select(const ActiveLayer& active, std::int64_t layer_budget, std::int64_t layer);

 private:
  // The best candidates so far: their scores and ids side by side.
  struct Best {
    Buffer scores;
    Buffer ids;
    TopKState state(std::span<const std::int64_t> lens) const;
  };

  Result<Best> open_best(std::int64_t num_candidates);
  // Fills best.ids with the candidates that stay, lens[head] for each head, and sets lens.
  Status choose(BlockScorer& scorer, const Best& best, std::span<std::int64_t> lens);
  Status choose_tokens(BlockScorer& scorer, const Best& best, std::span<const std::int64_t> lens,
                       ScoreProbe* probe);
  Status share_out(BlockScorer& scorer, const Best& best, std::span<std::int64_t> lens);
  // Candidates of each head, from the best of all heads together.
  Result<std::vector<std::int64_t>> mixed_shares(const TopKState& all, const BlockScorer& scorer,
                                                 std::int64_t base) const;
  Result<std::vector<std::int64_t>> shares_above_floor(const TopKState& all,
                                                       const BlockScorer& scorer,
                                                       std::int64_t base) const;
  Status choose_units(BlockScorer& scorer, const Best& best, std::span<const std::int64_t> lens);

  Backend* backend_;
  ScoreRecipe recipe_;
  std::int64_t num_q_heads_;
  std::int64_t key_block_len_;
  ScoreProbe* probe_;
  std::int64_t layer_ = 0;  // being compressed
};

}  // namespace tidekv
