#include "compress/block_scorer.h"

#include <algorithm>

#include "base/checked_math.h"

namespace tidekv {

Result<BlockScorer::Scratch> BlockScorer::scratch(Backend& backend, std::int64_t rows,
                                                  std::int64_t cols) {
  Scratch scratch;
  scratch.rows = rows;
  TIDEKV_ASSIGN(
      scratch.buffer,
      backend.allocate({{Component::kCompressionTemp, rows * cols * size_of(DType::kF32)}}));
  return scratch;
}

Result<BlockScorer> BlockScorer::open(Backend& backend, const ScoreRecipe& recipe,
                                      const ActiveLayer& active, const Options& options) {
  BlockScorer scorer;
  scorer.backend_ = &backend;
  scorer.recipe_ = recipe;
  scorer.kv_ = active.kv().view();
  scorer.queries_ = active.window_queries();
  scorer.candidates_ = {recipe.num_sinks, active.prompt_len() - recipe.num_recent};
  scorer.block_len_ =
      std::min(round_up(options.key_block_len, recipe.unit_len), scorer.candidates_.len());
  const std::int64_t halo = recipe.pool.kernel_len / 2;
  const std::int64_t scored_len = std::min(scorer.block_len_ + 2 * halo, scorer.candidates_.end);
  const std::int64_t window_len = scorer.queries_.rows();
  TIDEKV_ASSIGN(scorer.lse_, scratch(backend, 2 * options.num_q_heads, window_len));
  TIDEKV_ASSIGN(scorer.weights_, scratch(backend, options.num_q_heads * window_len, scored_len));
  TIDEKV_ASSIGN(scorer.raw_, scratch(backend, scorer.kv_.num_kv_heads(), scored_len));
  TIDEKV_ASSIGN(scorer.scores_, scratch(backend, scorer.kv_.num_kv_heads(), scorer.block_len_));
  backend.window_lse(scorer.queries_, scorer.kv_, scorer.lse_.cols(window_len));
  return scorer;
}

DeviceView BlockScorer::score(const KeyRange& wanted) {
  // Sinks are retained anyway and are no candidates; they still pool into their neighbours.
  const std::int64_t halo = recipe_.pool.kernel_len / 2;
  const KeyRange scored{std::max<std::int64_t>(0, wanted.begin - halo),
                        std::min(candidates_.end, wanted.end + halo)};
  const DeviceView weights = weights_.cols(scored.len());
  const DeviceView scores = scores_.cols(wanted.len());
  backend_->score_keys(queries_, kv_, lse_.cols(queries_.rows()), scored, weights);
  backend_->pool_scores(weights, recipe_.pool, {scored, wanted, candidates_.end, queries_.rows()},
                        raw_.cols(scored.len()), scores);
  return scores;
}

}  // namespace tidekv
