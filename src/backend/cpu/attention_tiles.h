// The walk over keys that attention of a prompt, its log-sum-exp and its weights share.
//
// The rows of one KV head are numbered query * group + g, so that all query heads that share keys
// lie together. A task owns a block of such rows. Keys are walked in tiles of 256 anchored at slot
// 0: a tile is packed once per task, then strips of 12 rows take it in turn: products, running
// maximum and normaliser, products with the values. The values of a tile are summed from zero and
// then added: one chain over a long prompt would be as inexact as it is long. A row skips tiles it
// does not see, and adds no key it does not see, so its bits are the same in any block.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/cpu/attention_shape.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/running_softmax.h"
#include "base/checked_math.h"

namespace tidekv::cpu {

// Most rows of a task: as many as keep a thread's scratch below 1 MiB.
inline constexpr std::int64_t kMostBlockRows = 384;
inline std::int64_t max_block_rows(std::int64_t head_dim) {
  return head_dim <= 128 ? kMostBlockRows : kMostBlockRows / 2;
}

// Scratch of one thread.
struct AttentionScratch {
  float* keys;              // [kKeyTile / kPanelCols, head_dim, kPanelCols]
  float* values;            // [padded_dim / kPanelCols, kKeyTile, kPanelCols]
  float* logits;            // [kStripRows, kRowStride], then the probabilities
  float* queries;           // [rows, kRowStride]
  float* tile_out;          // [kStripRows, padded_dim]
  float* out;               // [rows, padded_dim]
  RunningSoftmax* softmax;  // [rows]
  std::int64_t num_floats;

  AttentionScratch(float* base, std::int64_t head_dim);
};

// Rows [first, first + count) of one KV head.
struct RowBlock {
  std::int64_t kv_head = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Keys [begin, begin + len) by slot.
struct KeyTile {
  std::int64_t begin = 0;
  std::int64_t len = 0;
};

// What a call reads.
struct AttentionOperands {
  const Kernels& kernels;
  AttentionShape shape;
  DeviceView q;
  const KvView& kv;
  DeviceView mask = {};  // as of causal_mask; no rows: what a row sees follows from its place

  AttentionOperands(const Context& context, DeviceView queries, const KvView& cache,
                    DeviceView causal_mask = {})
      : kernels(context.kernels),
        shape(context.kernels, queries, cache),
        q(queries),
        kv(cache),
        mask(causal_mask) {}

  const HeadSpan& head(const RowBlock& block) const {
    return kv.heads[static_cast<std::size_t>(block.kv_head)];
  }
  // How many of the tile's keys, its first, the block's row sees.
  std::int64_t visible(const RowBlock& block, std::int64_t row, const KeyTile& tile) const;
};

// --- parts of the walk ---

void load_queries(const AttentionOperands& on, const RowBlock& block,
                  const AttentionScratch& scratch);
void pack_keys(const AttentionOperands& on, const RowBlock& block, const KeyTile& tile,
               const AttentionScratch& scratch);
void pack_values(const AttentionOperands& on, const RowBlock& block, const KeyTile& tile,
                 const AttentionScratch& scratch);
// logits[r] = products of `rows` queries with the first `num_keys` keys of the tile.
void multiply_keys(const AttentionShape& shape, const float* queries, std::int64_t rows,
                   std::int64_t num_keys, const AttentionScratch& scratch);
// Adds a tile's values to `out`, the first of the strip's rows, by the probabilities in logits.
// Row r sees keys [0, visible[r]) of it.
void add_values(const AttentionOperands& on, std::int64_t rows, const std::int64_t* visible,
                float* out, const AttentionScratch& scratch);
// Sums over values become the block's output, in place of its queries.
void store_output(const AttentionOperands& on, const RowBlock& block,
                  const AttentionScratch& scratch);
// Maxima and normalisers of those of the block's rows that `lse` asks for.
void store_lse(const AttentionOperands& on, const RowBlock& block, const LseColumns& lse,
               const AttentionScratch& scratch);

enum class Values : std::uint8_t { kSkip, kSum };

// The whole walk: leaves maxima, normalisers and (with values) undivided outputs in scratch.
void walk_keys(const AttentionOperands& on, const RowBlock& block, Values values,
               const AttentionScratch& scratch);

// Cuts the rows of every KV head into blocks and calls body(block, scratch) for each, the blocks
// with most keys first.
template <typename Body>
void for_row_blocks(const Context& context, const AttentionShape& shape, const Body& body) {
  constexpr std::int64_t kTasksPerThread = 4;
  constexpr std::int64_t kMinRows = 96;  // fewer, and packing keys would cost more than using them
  if (shape.num_rows() == 0) {
    return;
  }
  const std::int64_t wanted =
      ceil_div(kTasksPerThread * context.pool.num_threads(), shape.num_kv_heads);
  const std::int64_t rows = std::clamp(round_up(ceil_div(shape.num_rows(), wanted), kStripRows),
                                       kMinRows, max_block_rows(shape.head_dim));
  const std::int64_t num_blocks = ceil_div(shape.num_rows(), rows);
  const std::int64_t scratch_floats = attention_scratch_floats(shape.head_dim);
  context.pool.parallel_for(num_blocks * shape.num_kv_heads, [&](std::int64_t task, int thread) {
    RowBlock block;
    block.kv_head = task % shape.num_kv_heads;
    block.first = (num_blocks - 1 - task / shape.num_kv_heads) * rows;
    block.count = std::min(rows, shape.num_rows() - block.first);
    body(block, AttentionScratch(context.scratch(thread, scratch_floats), shape.head_dim));
  });
}

}  // namespace tidekv::cpu
