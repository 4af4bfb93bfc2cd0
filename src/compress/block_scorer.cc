#include "compress/block_scorer.h"

#include <algorithm>

#include "base/check.h"
#include "base/checked_math.h"

namespace tidekv {
namespace {

// Positions ahead over which expected attention is averaged.
constexpr std::int64_t kPositionsAhead = 512;

}  // namespace

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
                                      const CutRows& rows, const Options& options) {
  BlockScorer scorer;
  scorer.backend_ = &backend;
  scorer.recipe_ = recipe;
  scorer.rows_ = rows;
  const std::int64_t num_heads = rows.kv.num_kv_heads();
  if (rows.heads_differ) {
    TIDEKV_CHECK(!recipe.observes_all());  // heads are looked at one by one, queries are not
    // How long one head is depends on what it held; all together they have as many rows as planned.
    const std::int64_t most = rows.kv.total_rows();
    const std::int64_t group = options.num_q_heads / num_heads;
    scorer.block_len_ = std::min(round_up(options.key_block_len, recipe.unit_len), most);
    const std::int64_t query_len = rows.queries.rows() * group * rows.kv.head_dim();
    TIDEKV_ASSIGN(scorer.head_queries_,
                  backend.allocate(
                      {{Component::kCompressionTemp, query_len * size_of(rows.queries.dtype())}}));
    TIDEKV_TRY(scorer.open_scratch(1, group, most));
    return scorer;
  }
  scorer.kv_ = rows.kv;
  scorer.queries_ = rows.queries;
  scorer.candidates_ = scorer.candidates_of(0);
  scorer.block_len_ =
      std::min(round_up(options.key_block_len, recipe.unit_len), scorer.candidates_.len());
  TIDEKV_TRY(scorer.open_scratch(num_heads, options.num_q_heads, scorer.pooled_end()));
  scorer.prepare(0);
  return scorer;
}

Status BlockScorer::open_scratch(std::int64_t num_kv_heads, std::int64_t num_q_heads,
                                 std::int64_t most_end) {
  if (recipe_.source == ScoreSource::kKeyDifference) {
    TIDEKV_ASSIGN(anchors_, scratch(*backend_, num_kv_heads, rows_.kv.head_dim()));
  }
  if (recipe_.source == ScoreSource::kExpectedAttention) {
    const std::int64_t dim = rows_.kv.head_dim();
    TIDEKV_ASSIGN(expected_, scratch(*backend_, num_q_heads * (dim + 1), dim));
    TIDEKV_ASSIGN(lse_, scratch(*backend_, 2 * num_q_heads, 1));
  }
  if (recipe_.source == ScoreSource::kWindowAttention) {
    const std::int64_t halo = recipe_.pool.kernel_len / 2;
    const std::int64_t window_len = rows_.queries.rows();
    const std::int64_t scored_len = std::min(block_len_ + 2 * halo, most_end);
    TIDEKV_ASSIGN(lse_, scratch(*backend_, 2 * num_q_heads, window_len));
    TIDEKV_ASSIGN(weights_, scratch(*backend_, num_q_heads * window_len, scored_len));
    TIDEKV_ASSIGN(raw_, scratch(*backend_, num_kv_heads, scored_len));
  }
  TIDEKV_ASSIGN(scores_, scratch(*backend_, num_kv_heads, block_len_));
  return Ok{};
}

std::int64_t BlockScorer::pooled_end() const {
  return std::max(candidates_.end, kv_.heads.front().len - recipe_.window_len);
}

KeyRange BlockScorer::candidates_of(std::size_t head) const {
  return {recipe_.num_sinks, rows_.kv.heads[head].len - recipe_.num_recent};
}

void BlockScorer::look_at(std::size_t head) {
  const auto num_heads = rows_.kv.num_kv_heads();
  const std::int64_t window_len = rows_.queries.rows();
  const std::int64_t cols = rows_.queries.cols() / num_heads;
  kv_ = {rows_.kv.keys, rows_.kv.values, rows_.kv.heads.subspan(head, 1)};
  candidates_ = candidates_of(head);
  queries_ = head_queries_.view(rows_.queries.dtype(), window_len, cols);
  const DeviceView all = rows_.queries.reshaped(window_len * num_heads, cols);
  for (std::int64_t row = 0; row < window_len; ++row) {
    backend_->copy(all.rows_at(row * num_heads + static_cast<std::int64_t>(head), 1),
                   queries_.rows_at(row, 1));
  }
  prepare(static_cast<std::int64_t>(head));
}

void BlockScorer::prepare(std::int64_t first_head) {
  if (recipe_.source == ScoreSource::kKeyDifference) {
    backend_->mean_directions(kv_, anchors_.cols(kv_.head_dim()));
  }
  if (recipe_.source == ScoreSource::kExpectedAttention) {
    const ObservedQueries& observed = rows_.observed;
    const DeviceView expected = expected_.cols(kv_.head_dim());
    backend_->expect_queries(observed.moments, observed.count(), observed.inverse_freq,
                             {Position{static_cast<std::int32_t>(observed.end)}, kPositionsAhead},
                             expected);
    backend_->expected_lse(kv_, expected, candidates_, lse_.cols(1));
  }
  if (recipe_.source != ScoreSource::kWindowAttention) {
    return;
  }
  if (rows_.window_lse.rows() > 0) {
    copy_lse(first_head);
  } else {
    backend_->window_lse(queries_, kv_, lse_.cols(queries_.rows()));
  }
}

void BlockScorer::copy_lse(std::int64_t first_head) {
  const std::int64_t window_len = queries_.rows();
  const DeviceView all = rows_.window_lse;
  const DeviceView to = lse_.cols(window_len);
  const std::int64_t q_heads = to.rows() / 2;  // looked at
  const std::int64_t first = first_head * (all.rows() / 2 / rows_.kv.num_kv_heads());
  const auto copy_rows = [&](std::int64_t from, std::int64_t row) {
    if (all.cols() == window_len) {
      backend_->copy(all.rows_at(from, q_heads), to.rows_at(row, q_heads));
      return;
    }
    const DeviceView column = all.reshaped(all.rows() * all.cols(), 1);
    for (std::int64_t i = 0; i < q_heads; ++i) {  // the last of its columns
      const std::int64_t end = (from + i + 1) * all.cols();
      backend_->copy(column.rows_at(end - window_len, window_len).reshaped(1, window_len),
                     to.rows_at(row + i, 1));
    }
  };
  copy_rows(first, 0);                         // maxima
  copy_rows(all.rows() / 2 + first, q_heads);  // normalisers
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
    case ScoreSource::kKeyDifference:
      backend_->score_directions(kv_, anchors_.cols(kv_.head_dim()), wanted, scores);
      break;
    case ScoreSource::kExpectedAttention:
      backend_->score_expected(kv_, expected_.cols(kv_.head_dim()), lse_.cols(1), wanted, scores);
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
                        std::min(pooled_end(), wanted.end + halo)};
  const DeviceView weights = weights_.cols(scored.len());
  backend_->score_keys(queries_, kv_, lse_.cols(queries_.rows()), scored, weights);
  backend_->pool_scores(weights, recipe_.pool, {scored, wanted, pooled_end(), queries_.rows()},
                        raw_.cols(scored.len()), scores);
}

}  // namespace tidekv
