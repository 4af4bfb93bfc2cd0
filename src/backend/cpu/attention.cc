// Causal attention of a prompt (attend), its log-sum-exp alone (window_lse) and its weights
// (score_keys): what each leaves of the walk over keys in attention_tiles.h.
#include <algorithm>

#include "backend/cpu/attention_tiles.h"

namespace tidekv::cpu {
namespace {

// What score_keys reads and writes beside queries and keys.
struct Scoring {
  DeviceView lse;
  KeyRange range;
  DeviceView weights;
};

// Weights of the tile's keys for all rows of the KV head.
void score_tile(const AttentionOperands& on, std::int64_t kv_head, const KeyTile& tile,
                const Scoring& scoring, const AttentionScratch& scratch) {
  const AttentionShape& shape = on.shape;
  const std::int64_t num_q_heads = shape.group * shape.num_kv_heads;
  pack_keys(on, {kv_head, 0, 0}, tile, scratch);
  for (std::int64_t strip = 0; strip < shape.num_rows(); strip += kStripRows) {
    const RowBlock block{kv_head, strip, std::min(kStripRows, shape.num_rows() - strip)};
    load_queries(on, block, scratch);
    multiply_keys(shape, scratch.queries, block.count, tile.len, scratch);
    for (std::int64_t r = 0; r < block.count; ++r) {
      const std::int64_t query = (strip + r) / shape.group;
      const std::int64_t q_head = kv_head * shape.group + (strip + r) % shape.group;
      const std::int64_t visible = on.visible(block, r, tile);
      float* to = floats(scoring.weights, q_head * shape.num_queries + query) +
                  (tile.begin - scoring.range.begin);
      if (visible > 0) {
        on.kernels.weights(scratch.logits + r * kRowStride, visible, shape.scale,
                           floats(scoring.lse, q_head)[query],
                           floats(scoring.lse, num_q_heads + q_head)[query], to);
      }
      std::fill(to + visible, to + tile.len, 0.0F);
    }
  }
}

}  // namespace

void attend_prompt(const Context& context, DeviceView q, const KvView& kv,
                   const AttentionOptions& options) {
  const AttentionOperands on(context, q, kv, options.mask);
  for_row_blocks(context, on.shape, [&](const RowBlock& block, const AttentionScratch& scratch) {
    walk_keys(on, block, Values::kSum, scratch);
    store_lse(on, block, options.lse, scratch);
    store_output(on, block, scratch);
  });
}

void window_lse(const Context& context, DeviceView q, const KvView& kv, DeviceView lse) {
  const AttentionOperands on(context, q, kv);
  for_row_blocks(context, on.shape, [&](const RowBlock& block, const AttentionScratch& scratch) {
    walk_keys(on, block, Values::kSkip, scratch);
    store_lse(on, block, {lse, 0, q.rows()}, scratch);
  });
}

void score_keys(const Context& context, DeviceView q, const KvView& kv, DeviceView lse,
                KeyRange range, DeviceView weights) {
  const AttentionOperands on(context, q, kv);
  const std::int64_t num_tiles = ceil_div(range.len(), kKeyTile);
  const std::int64_t scratch_floats = attention_scratch_floats(on.shape.head_dim);
  context.pool.parallel_for(num_tiles * on.shape.num_kv_heads, [&](std::int64_t task, int thread) {
    const AttentionScratch scratch(context.scratch(thread, scratch_floats), on.shape.head_dim);
    const std::int64_t begin = range.begin + task % num_tiles * kKeyTile;
    const KeyTile tile{begin, std::min(kKeyTile, range.end - begin)};
    score_tile(on, task / num_tiles, tile, {lse, range, weights}, scratch);
  });
}

}  // namespace tidekv::cpu
