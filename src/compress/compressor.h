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

// Sees scores as they are made, but those of heads that differ in length; for tests and digests.
// `scores` [num_kv_heads, range.len()].
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

  // Compresses the active layer to `layer_budget` tokens per KV head and commits what stays. A
  // budget that covers the prompt evicts nothing: the cache gets a copy of the whole layer.
  Status compress_and_commit(const ActiveLayer& active, std::int64_t layer_budget,
                             CacheManager& cache);

  // The slots that stay of layer number `layer`; layer_budget * num_kv_heads of them. `lens`
  // [num_kv_heads] receives how many of each head, and what is returned looks into it.
  Result<Retained> select(const CutRows& rows, std::int64_t layer_budget, std::int64_t layer,
                          std::span<std::int64_t> lens);

 private:
  // The best candidates so far: their scores and ids side by side.
  struct Best {
    Buffer scores;
    Buffer ids;
    TopKState state(std::span<const std::int64_t> lens) const;
    // The list of one head, where the heads' lists have these lens.
    TopKState of_head(std::span<const std::int64_t> lens, std::size_t head) const;
  };

  Result<Best> open_best(std::int64_t num_candidates);
  // Fills best.ids with the candidates that stay, lens[head] for each head, and sets lens.
  Status choose(BlockScorer& scorer, const Best& best, std::span<std::int64_t> lens);
  Status choose_tokens(BlockScorer& scorer, const Best& best, std::span<const std::int64_t> lens,
                       ScoreProbe* probe);
  Status choose_head_by_head(BlockScorer& scorer, const Best& best,
                             std::span<const std::int64_t> lens);
  Status share_out(BlockScorer& scorer, const Best& best, std::span<std::int64_t> lens);
  // How many candidates each head has, and where its ids begin in a list of all heads'.
  struct Heads {
    std::vector<std::int64_t> candidates;
    std::int64_t stride = 0;
  };
  // Candidates that stay of each head, from the best of all heads together.
  Result<std::vector<std::int64_t>> mixed_shares(const TopKState& all, const Heads& heads) const;
  Result<std::vector<std::int64_t>> shares_above_floor(const TopKState& all,
                                                       const Heads& heads) const;
  // Offers every candidate of every head to one list; ids of a head begin at head * stride.
  Status offer_all(BlockScorer& scorer, std::int64_t stride, TopKState& all);
  Status choose_units(BlockScorer& scorer, const Best& best, std::span<const std::int64_t> lens);
  // Best candidates and mandatory slots together, ascending: of each head lens[head] candidates.
  void take(const CutRows& rows, const Best& best, std::span<const std::int64_t> lens,
            DeviceView retained);

  Backend* backend_;
  ScoreRecipe recipe_;
  std::int64_t num_q_heads_;
  std::int64_t key_block_len_;
  ScoreProbe* probe_;
  std::int64_t layer_ = 0;  // being compressed
};

}  // namespace tidekv
