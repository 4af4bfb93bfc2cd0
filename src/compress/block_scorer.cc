#include "compress/block_scorer.h"

#include <algorithm>

#include "base/check.h"
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
  TIDEKV_ASSIGN(scorer.scores_, scratch(backend, scorer.kv_.num_kv_heads(), scorer.block_len_));
  if (recipe.source == ScoreSource::kWindowAttention) {
    TIDEKV_TRY(scorer.open_attention(options.num_q_heads));
  }
  return scorer;
}

Status BlockScorer::open_attention(std::int64_t num_q_heads) {
  const std::int64_t halo = recipe_.pool.kernel_len / 2;
  const std::int64_t scored_len = std::min(block_len_ + 2 * halo, candidates_.end);
  const std::int64_t window_len = queries_.rows();
  TIDEKV_ASSIGN(lse_, scratch(*backend_, 2 * num_q_heads, window_len));
  TIDEKV_ASSIGN(weights_, scratch(*backend_, num_q_heads * window_len, scored_len));
  TIDEKV_ASSIGN(raw_, scratch(*backend_, kv_.num_kv_heads(), scored_len));
  backend_->window_lse(queries_, kv_, lse_.cols(window_len));
  return Ok{};
}

DeviceView BlockScorer::score(const KeyRange& wanted) {
  const DeviceView scores = scores_.cols(wanted.len());
  switch (recipe_.source) {
    case ScoreSource::kWindowAttention:
      score_by_attention(wanted, scores);
      break;
    case ScoreSource::kKeyNorm:
      backend_->score_key_norms(kv_, wanted, scores);
      break;
    case ScoreSource::kNothing:
      TIDEKV_CHECK(false);  // nobody asks
  }
  return scores;
}

void BlockScorer::score_by_attention(const KeyRange& wanted, DeviceView scores) {
  // Sinks are retained anyway and are no candidates; they still pool into their neighbours.
  const std::int64_t halo = recipe_.pool.kernel_len / 2;
  const KeyRange scored{std::max<std::int64_t>(0, wanted.begin - halo),
                        std::min(candidates_.end, wanted.end + halo)};
  const DeviceView weights = weights_.cols(scored.len());
  backend_->score_keys(queries_, kv_, lse_.cols(queries_.rows()), scored, weights);
  backend_->pool_scores(weights, recipe_.pool, {scored, wanted, candidates_.end, queries_.rows()},
                        raw_.cols(scored.len()), scores);
}

}  // namespace tidekv
