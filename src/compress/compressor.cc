#include "compress/compressor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "compress/head_budgets.h"
#include "compress/unit_choice.h"

namespace tidekv {

Status Compressor::compress_and_commit(const ActiveLayer& active, std::int64_t layer_budget,
                                       CacheManager& cache) {
  if (layer_budget >= active.kv().heads().front().len) {
    return cache.commit_copy(active);
  }
  TIDEKV_ASSIGN(Retained retained, select({.kv = active.kv().view(),
                                           .queries = active.last_queries(recipe_.window_len),
                                           .window_lse = active.window_lse(),
                                           .observed = active.observed()},
                                          layer_budget, cache.num_committed(), cache.cut_lens()));
  return cache.commit(active, std::move(retained));
}

Result<Retained> Compressor::select(const CutRows& rows, std::int64_t layer_budget,
                                    std::int64_t layer, std::span<std::int64_t> lens) {
  TIDEKV_CHECK_OP(layer_budget, >=, recipe_.num_mandatory());
  layer_ = layer;
  const std::int64_t num_heads = rows.kv.num_kv_heads();
  const std::int64_t base = layer_budget - recipe_.num_mandatory();
  const std::int64_t total = num_heads * layer_budget;
  Retained retained;
  TIDEKV_ASSIGN(retained.buffer,
                backend_->allocate({{Component::kCachePositions, total * size_of(DType::kI32)}}));
  retained.positions = retained.buffer.view(DType::kI32, 1, total);

  TIDEKV_ASSIGN(const Best best, open_best(num_heads * base));
  std::fill(lens.begin(), lens.end(), base);
  if (base > 0) {
    TIDEKV_CHECK(recipe_.source != ScoreSource::kNothing);
    TIDEKV_ASSIGN(BlockScorer scorer,
                  BlockScorer::open(*backend_, recipe_, rows, {num_q_heads_, key_block_len_}));
    TIDEKV_TRY(choose(scorer, best, lens));
  }
  take(rows, best, lens, retained.positions);
  for (std::int64_t& len : lens) {
    len += recipe_.num_mandatory();
  }
  retained.lens = lens;
  return retained;
}

void Compressor::take(const CutRows& rows, const Best& best, std::span<const std::int64_t> lens,
                      DeviceView retained) {
  Backend::Mandatory mandatory{.num_sinks = recipe_.num_sinks, .num_recent = recipe_.num_recent};
  const auto take_from = [&](TopKState state, std::int64_t len, DeviceView to) {
    state.num_offered = len - mandatory.count();
    mandatory.prompt_len = len;
    backend_->topk_take(state, mandatory, to);
  };
  if (!rows.heads_differ) {
    take_from(best.state(lens), rows.kv.heads.front().len, retained);
    return;
  }
  const DeviceView column = retained.reshaped(retained.cols(), 1);
  std::int64_t first = 0;
  for (std::size_t head = 0; head < lens.size(); ++head) {
    const std::int64_t count = lens[head] + mandatory.count();
    take_from(best.of_head(lens, head), rows.kv.heads[head].len,
              column.rows_at(first, count).reshaped(1, count));
    first += count;
  }
}

TopKState Compressor::Best::state(std::span<const std::int64_t> lens) const {
  const std::int64_t total = HeadLists{{}, lens}.total();
  return {scores.view(DType::kF32, 1, total), ids.view(DType::kI32, 1, total), lens, 0};
}

TopKState Compressor::Best::of_head(std::span<const std::int64_t> lens, std::size_t head) const {
  const TopKState all = state(lens);
  const HeadLists own = HeadLists{all.ids, lens}.of_head(head);
  return {HeadLists{all.scores, lens}.of_head(head).entries, own.entries, own.lens, 0};
}

Result<Compressor::Best> Compressor::open_best(std::int64_t num_candidates) {
  const Charge charge{Component::kCompressionTemp, num_candidates * size_of(DType::kF32)};
  Best best;
  TIDEKV_ASSIGN(best.scores, backend_->allocate({charge}));
  TIDEKV_ASSIGN(best.ids, backend_->allocate({charge}));
  return best;
}

Status Compressor::choose(BlockScorer& scorer, const Best& best, std::span<std::int64_t> lens) {
  if (recipe_.unit_len > 1) {
    return choose_units(scorer, best, lens);
  }
  if (recipe_.even_share < 1) {
    TIDEKV_TRY(share_out(scorer, best, lens));
    return choose_tokens(scorer, best, lens, nullptr);  // the same scores once more
  }
  return choose_tokens(scorer, best, lens, probe_);
}

Status Compressor::choose_tokens(BlockScorer& scorer, const Best& best,
                                 std::span<const std::int64_t> lens, ScoreProbe* probe) {
  if (scorer.rows().heads_differ) {
    return choose_head_by_head(scorer, best, lens);
  }
  TopKState state = best.state(lens);
  return scorer.for_each_block([&](const KeyRange& range, DeviceView scores) -> Status {
    if (probe != nullptr) {
      probe->on_scores(layer_, range, scores);
    }
    backend_->topk_merge(scores, range.begin, state);
    state.num_offered += range.len();
    return Ok{};
  });
}

Status Compressor::choose_head_by_head(BlockScorer& scorer, const Best& best,
                                       std::span<const std::int64_t> lens) {
  for (std::size_t head = 0; head < lens.size(); ++head) {
    scorer.look_at(head);
    TopKState state = best.of_head(lens, head);
    TIDEKV_TRY(scorer.for_each_block([&](const KeyRange& range, DeviceView scores) -> Status {
      backend_->topk_merge(scores, range.begin, state);
      state.num_offered += range.len();
      return Ok{};
    }));
  }
  return Ok{};
}

Status Compressor::offer_all(BlockScorer& scorer, std::int64_t stride, TopKState& all) {
  const auto offer = [&](std::int64_t head, const KeyRange& range, DeviceView scores) {
    backend_->topk_merge(scores, head * stride + range.begin, all);
    all.num_offered += range.len();
  };
  if (!scorer.rows().heads_differ) {
    return scorer.for_each_block([&](const KeyRange& range, DeviceView scores) -> Status {
      if (probe_ != nullptr) {
        probe_->on_scores(layer_, range, scores);
      }
      for (std::int64_t head = 0; head < scores.rows(); ++head) {
        offer(head, range, scores.rows_at(head, 1));
      }
      return Ok{};
    });
  }
  for (std::int64_t head = 0; head < scorer.rows().kv.num_kv_heads(); ++head) {
    scorer.look_at(static_cast<std::size_t>(head));
    TIDEKV_TRY(scorer.for_each_block([&](const KeyRange& range, DeviceView scores) -> Status {
      offer(head, range, scores);
      return Ok{};
    }));
  }
  return Ok{};
}

// One list for all heads together shows how many of the best candidates each has; a second look at
// the scores then fills lists of the lengths that follow. So temp is no larger than for equal
// lists.
Status Compressor::share_out(BlockScorer& scorer, const Best& best, std::span<std::int64_t> lens) {
  Heads heads;
  for (std::size_t head = 0; head < lens.size(); ++head) {
    heads.candidates.push_back(scorer.candidates_of(head).len());
    heads.stride = std::max(heads.stride, scorer.candidates_of(head).end);
  }
  const std::int64_t total = HeadLists{{}, lens}.total();
  TopKState all = best.state(std::span(&total, 1));
  TIDEKV_TRY(offer_all(scorer, heads.stride, all));

  TIDEKV_ASSIGN(const std::vector<std::int64_t> shares, recipe_.even_share_is_floor
                                                            ? shares_above_floor(all, heads)
                                                            : mixed_shares(all, heads));
  std::copy(shares.begin(), shares.end(), lens.begin());
  return Ok{};
}

Result<std::vector<std::int64_t>> Compressor::mixed_shares(const TopKState& all,
                                                           const Heads& heads) const {
  std::vector<std::int32_t> counts(heads.candidates.size());
  const auto num_heads = static_cast<std::int64_t>(counts.size());
  TIDEKV_ASSIGN(
      const Buffer buffer,
      backend_->allocate({{Component::kCompressionTemp, num_heads * size_of(DType::kI32)}}));
  const DeviceView view = buffer.view(DType::kI32, 1, num_heads);
  backend_->count_ids(all.ids, heads.stride, view);
  TIDEKV_TRY(download(*backend_, view, std::as_writable_bytes(std::span(counts))));
  return split_over_heads(counts, recipe_.even_share, all.ids.cols() / num_heads, heads.candidates);
}

Result<std::vector<std::int64_t>> Compressor::shares_above_floor(const TopKState& all,
                                                                 const Heads& heads) const {
  const std::int64_t base = all.ids.cols() / static_cast<std::int64_t>(heads.candidates.size());
  const std::int64_t budget = base + recipe_.num_mandatory();
  const auto share = static_cast<std::int64_t>(static_cast<double>(budget) * recipe_.even_share);
  const std::int64_t floor = std::clamp<std::int64_t>(share - recipe_.num_mandatory(), 0, base);
  std::vector<float> scores(static_cast<std::size_t>(all.scores.cols()));
  std::vector<std::int32_t> ids(scores.size());
  TIDEKV_TRY(download(*backend_, all.scores, std::as_writable_bytes(std::span(scores))));
  TIDEKV_TRY(download(*backend_, all.ids, std::as_writable_bytes(std::span(ids))));
  return split_above_floor(scores, ids, heads.stride, floor, heads.candidates);
}

Status Compressor::choose_units(BlockScorer& scorer, const Best& best,
                                std::span<const std::int64_t> lens) {
  TIDEKV_ASSIGN(UnitChoice choice, UnitChoice::open(*backend_, recipe_.unit_len, scorer, lens));
  TIDEKV_TRY(scorer.for_each_block([&](const KeyRange& range, DeviceView scores) -> Status {
    if (probe_ != nullptr) {
      probe_->on_scores(layer_, range, scores);
    }
    choice.offer(range, scores);
    return Ok{};
  }));
  return choice.take(scorer, best.state(lens).ids);
}

}  // namespace tidekv
