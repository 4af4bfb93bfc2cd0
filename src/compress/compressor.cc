#include "compress/compressor.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tidekv {
namespace {

// A matrix of four-byte elements in scratch memory of its own.
struct Scratch {
  Buffer buffer;
  DeviceView view;
};

Result<Scratch> allocate_scratch(Backend& backend, Component component, DType dtype,
                                 std::int64_t rows, std::int64_t cols) {
  Scratch scratch;
  TIDEKV_ASSIGN(scratch.buffer, backend.allocate({{component, rows * cols * size_of(dtype)}}));
  scratch.view = scratch.buffer.view(dtype, rows, cols);
  return scratch;
}

}  // namespace

Status Compressor::compress_and_commit(ActiveLayer active, std::int64_t layer_budget,
                                       CacheManager& cache) {
  if (layer_budget >= active.prompt_len()) {
    cache.commit_all(std::move(active));
    return Ok{};
  }
  TIDEKV_ASSIGN(Retained retained, select(active, layer_budget, cache.num_committed()));
  return cache.commit(active, std::move(retained.buffer), retained.positions);
}

Result<Compressor::Retained> Compressor::select(const ActiveLayer& active,
                                                std::int64_t layer_budget, std::int64_t layer) {
  const KvView kv = active.kv().view();
  const DeviceView queries = active.window_queries();
  TIDEKV_CHECK_OP(layer_budget, >=, recipe_.num_mandatory());
  const std::int64_t k = layer_budget - recipe_.num_mandatory();

  Retained retained;
  TIDEKV_ASSIGN(Scratch positions, allocate_scratch(*backend_, Component::kCachePositions,
                                                    DType::kI32, kv.num_kv_heads(), layer_budget));
  TIDEKV_ASSIGN(const Scratch lse, allocate_scratch(*backend_, Component::kCompressionTemp,
                                                    DType::kF32, 2 * num_q_heads_, queries.rows()));
  TIDEKV_ASSIGN(const Scratch best_scores, allocate_scratch(*backend_, Component::kCompressionTemp,
                                                            DType::kF32, kv.num_kv_heads(), k));
  TIDEKV_ASSIGN(
      const Scratch best_positions,
      allocate_scratch(*backend_, Component::kCompressionTemp, DType::kI32, kv.num_kv_heads(), k));

  backend_->window_lse(queries, kv, lse.view);  // pass 1, Eqs. (4)-(6)
  TopKState topk{best_scores.view, best_positions.view, 0};
  TIDEKV_TRY(score_blocks(active, lse.view, layer, topk));  // pass 2, Eqs. (7)-(8)
  backend_->topk_take(topk,
                      {.num_sinks = recipe_.num_sinks,
                       .num_recent = recipe_.window_len,
                       .prompt_len = active.prompt_len()},
                      positions.view);
  retained.buffer = std::move(positions.buffer);
  retained.positions = positions.view;
  return retained;
}

Status Compressor::score_blocks(const ActiveLayer& active, DeviceView lse, std::int64_t layer,
                                TopKState& topk) {
  const KvView kv = active.kv().view();
  const DeviceView queries = active.window_queries();
  const std::int64_t prefix_len = active.window_begin();
  const std::int64_t halo = recipe_.pool.kernel_len / 2;
  const std::int64_t block_len = std::min(key_block_len_, prefix_len - recipe_.num_sinks);
  const std::int64_t scored_len = std::min(block_len + 2 * halo, prefix_len);

  TIDEKV_ASSIGN(const Scratch weights,
                allocate_scratch(*backend_, Component::kCompressionTemp, DType::kF32,
                                 num_q_heads_ * queries.rows(), scored_len));
  TIDEKV_ASSIGN(const Scratch raw, allocate_scratch(*backend_, Component::kCompressionTemp,
                                                    DType::kF32, kv.num_kv_heads(), scored_len));
  TIDEKV_ASSIGN(const Scratch pooled, allocate_scratch(*backend_, Component::kCompressionTemp,
                                                       DType::kF32, kv.num_kv_heads(), block_len));

  // Sinks are retained anyway and are not offered; they still pool into their neighbours.
  for (std::int64_t begin = recipe_.num_sinks; begin < prefix_len; begin += block_len) {
    const KeyRange wanted{begin, std::min(begin + block_len, prefix_len)};
    const KeyRange scored{std::max<std::int64_t>(0, wanted.begin - halo),
                          std::min(prefix_len, wanted.end + halo)};
    const DeviceView block_weights =
        weights.buffer.view(DType::kF32, weights.view.rows(), scored.len());
    const DeviceView block_raw = raw.buffer.view(DType::kF32, raw.view.rows(), scored.len());
    const DeviceView scores = pooled.buffer.view(DType::kF32, pooled.view.rows(), wanted.len());
    backend_->score_keys(queries, kv, lse, scored, block_weights);
    backend_->pool_scores(block_weights, recipe_.pool, {scored, wanted, prefix_len, queries.rows()},
                          block_raw, scores);
    if (probe_ != nullptr) {
      probe_->on_scores(layer, wanted, scores);
    }
    backend_->topk_merge(scores, Position{static_cast<std::int32_t>(wanted.begin)}, topk);
    topk.num_offered += wanted.len();
  }
  return Ok{};
}

}  // namespace tidekv
