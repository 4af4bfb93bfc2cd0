// Causal attention (attend), its log-sum-exp alone (window_lse) and its weights (score_keys).
//
// The rows of one KV head are numbered query * group + g, so that all query heads that share keys
// lie together. A task owns a block of such rows. Keys are walked in tiles of 256 anchored at slot
// 0: a tile is packed once per task, then strips of 12 rows take it in turn: products, running
// maximum and normaliser, products with the values. The values of a tile are summed from zero and
// then added: one chain over a long prompt would be as inexact as it is long. A row skips tiles it
// does not see, and adds no key it does not see, so its bits are the same in any block.
#include <algorithm>
#include <memory>

#include "backend/cpu/attention_shape.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/running_softmax.h"
#include "base/checked_math.h"

namespace tidekv::cpu {
namespace {

// Most rows of a task: as many as keep a thread's scratch below 1 MiB.
std::int64_t max_block_rows(std::int64_t head_dim) { return head_dim <= 128 ? 384 : 192; }

constexpr std::int64_t kSoftmaxFloats = sizeof(RunningSoftmax) / sizeof(float);

struct Scratch {
  float* keys;              // [kKeyTile / kPanelCols, head_dim, kPanelCols]
  float* values;            // [padded_dim / kPanelCols, kKeyTile, kPanelCols]
  float* logits;            // [kStripRows, kRowStride], then the probabilities
  float* queries;           // [rows, kRowStride]
  float* tile_out;          // [kStripRows, padded_dim]
  float* out;               // [rows, padded_dim]
  RunningSoftmax* softmax;  // [rows]
  std::int64_t num_floats;

  Scratch(float* base, std::int64_t head_dim) {
    const std::int64_t padded = round_up(head_dim, kPanelCols);
    const std::int64_t rows = max_block_rows(head_dim);
    std::int64_t used = 0;
    const auto take = [&](std::int64_t count) {
      float* part = base == nullptr ? nullptr : base + used;
      used += round_up(count, 16);
      return part;
    };
    keys = take(kKeyTile * head_dim);
    values = take(kKeyTile * padded);
    logits = take(kStripRows * kRowStride);
    queries = take(rows * kRowStride);
    tile_out = take(kStripRows * padded);
    out = take(rows * padded);
    softmax = reinterpret_cast<RunningSoftmax*>(take(rows * kSoftmaxFloats));
    num_floats = used;
  }
};

// Rows [first, first + count) of one KV head.
struct RowBlock {
  std::int64_t kv_head = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Keys [begin, begin + len) by slot.
struct Tile {
  std::int64_t begin = 0;
  std::int64_t len = 0;
};

void pack_keys(const AttentionShape& shape, const KvView& kv, const HeadSpan& head,
               const Tile& tile, const Scratch& scratch) {
  for (std::int64_t key = 0; key < tile.len; key += kPanelCols) {
    shape.query_key.pack_columns(address(kv.keys, head.offset + tile.begin + key), shape.type,
                                 shape.head_dim, std::min(kPanelCols, tile.len - key),
                                 shape.head_dim, scratch.keys + key * shape.head_dim);
  }
}

void pack_values(const Kernels& kernels, const AttentionShape& shape, const KvView& kv,
                 const HeadSpan& head, const Tile& tile, const Scratch& scratch) {
  for (std::int64_t col = 0; col < shape.head_dim; col += kPanelCols) {
    kernels.pack_rows(address(kv.values, head.offset + tile.begin, col), shape.type, shape.head_dim,
                      tile.len, std::min(kPanelCols, shape.head_dim - col),
                      scratch.values + col * kKeyTile);
  }
}

// logits[r] = products of `rows` queries with the first `num_keys` keys of the tile.
void multiply_keys(const AttentionShape& shape, const float* queries, std::int64_t rows,
                   std::int64_t num_keys, const Scratch& scratch) {
  for (std::int64_t key = 0; key < num_keys; key += kPanelCols) {
    shape.query_key.multiply(queries, scratch.keys + key * shape.head_dim, rows,
                             shape.query_key.num_units(shape.head_dim), Start::kZero,
                             scratch.logits + key, kRowStride);
  }
}

// Rows [first, first + count) of a strip.
struct StripRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// out (+)= the rows' probabilities of `keys`, counted within the tile, times the values.
void multiply_values(const Kernels& kernels, const AttentionShape& shape, const StripRows& rows,
                     const Tile& keys, Start start, float* out, const Scratch& scratch) {
  for (std::int64_t col = 0; col < shape.padded_dim; col += kPanelCols) {
    kernels.multiply(scratch.logits + rows.first * kRowStride + keys.begin,
                     scratch.values + col * kKeyTile + keys.begin * kPanelCols, rows.count,
                     keys.len, start, out + rows.first * shape.padded_dim + col, shape.padded_dim);
  }
}

// Adds a tile's values to `out`, the strip's first row. Row r sees keys [0, visible(r)) of it.
template <typename Visible>
void add_values(const Kernels& kernels, const AttentionShape& shape, std::int64_t rows,
                const Visible& visible, float* out, const Scratch& scratch) {
  const std::int64_t seen_by_all = visible(0);
  if (visible(rows - 1) == seen_by_all) {
    multiply_values(kernels, shape, {0, rows}, {0, seen_by_all}, Start::kAdd, out, scratch);
    return;
  }
  // Near the diagonal later rows see a few keys more. A masked key is not multiplied by zero but
  // left out: its value may be infinite.
  if (seen_by_all > 0) {
    multiply_values(kernels, shape, {0, rows}, {0, seen_by_all}, Start::kZero, scratch.tile_out,
                    scratch);
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    if (visible(r) > seen_by_all) {
      multiply_values(kernels, shape, {r, 1}, {seen_by_all, visible(r) - seen_by_all},
                      seen_by_all > 0 ? Start::kContinue : Start::kZero, scratch.tile_out, scratch);
    }
    if (visible(r) > 0) {
      kernels.narrow_add(scratch.tile_out + r * shape.padded_dim, shape.padded_dim, Element::kF32,
                         out + r * shape.padded_dim);
    }
  }
}

enum class Values : std::uint8_t { kSkip, kSum };

// One strip of the block takes one tile.
void process_strip(const Kernels& kernels, const AttentionShape& shape, const HeadSpan& head,
                   const RowBlock& block, std::int64_t strip, const Tile& tile, Values values,
                   const Scratch& scratch) {
  const std::int64_t rows = std::min(kStripRows, block.count - strip);
  const auto visible = [&](std::int64_t r) {
    const std::int64_t end = shape.visible(head.len, block.first + strip + r);
    return std::clamp<std::int64_t>(end - tile.begin, 0, tile.len);
  };
  const std::int64_t seen_by_last = visible(rows - 1);
  if (seen_by_last == 0) {
    return;
  }
  multiply_keys(shape, scratch.queries + strip * kRowStride, rows, seen_by_last, scratch);
  for (std::int64_t r = 0; r < rows; ++r) {
    if (visible(r) > 0) {
      const float shrink = scratch.softmax[strip + r].take(
          kernels, shape.scale, scratch.logits + r * kRowStride, visible(r));
      if (values == Values::kSum && shrink != 1.0F) {
        kernels.multiply_by(scratch.out + (strip + r) * shape.padded_dim, shape.padded_dim, shrink);
      }
    }
  }
  if (values == Values::kSum) {
    add_values(kernels, shape, rows, visible, scratch.out + strip * shape.padded_dim, scratch);
  }
}

// Leaves maxima, normalisers and (with values) undivided outputs of the block in scratch.
void process_block(const Kernels& kernels, const AttentionShape& shape, DeviceView q,
                   const KvView& kv, const RowBlock& block, Values values, const Scratch& scratch) {
  const HeadSpan& head = kv.heads[static_cast<std::size_t>(block.kv_head)];
  for (std::int64_t r = 0; r < block.count; ++r) {
    shape.query_key.load_row(shape.query(q, block.kv_head, block.first + r), shape.type,
                             shape.head_dim, scratch.queries + r * kRowStride);
  }
  std::uninitialized_fill_n(scratch.softmax, block.count, RunningSoftmax{});
  if (values == Values::kSum) {
    std::fill_n(scratch.out, block.count * shape.padded_dim, 0.0F);
  }
  const std::int64_t end = shape.visible(head.len, block.first + block.count - 1);
  for (std::int64_t begin = 0; begin < end; begin += kKeyTile) {
    const Tile tile{begin, std::min(kKeyTile, end - begin)};
    pack_keys(shape, kv, head, tile, scratch);
    if (values == Values::kSum) {
      pack_values(kernels, shape, kv, head, tile, scratch);
    }
    for (std::int64_t strip = 0; strip < block.count; strip += kStripRows) {
      process_strip(kernels, shape, head, block, strip, tile, values, scratch);
    }
  }
}

// Cuts the rows of every KV head into blocks and calls body(block, thread) for each, the blocks
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
  context.pool.parallel_for(num_blocks * shape.num_kv_heads, [&](std::int64_t task, int thread) {
    RowBlock block;
    block.kv_head = task % shape.num_kv_heads;
    block.first = (num_blocks - 1 - task / shape.num_kv_heads) * rows;
    block.count = std::min(rows, shape.num_rows() - block.first);
    body(block, thread);
  });
}

// What score_keys reads and writes beside queries and keys.
struct Scoring {
  DeviceView lse;
  KeyRange range;
  DeviceView weights;
};

// Weights of the tile's keys for all rows of the KV head.
void score_tile(const Kernels& kernels, const AttentionShape& shape, DeviceView q, const KvView& kv,
                std::int64_t kv_head, const Tile& tile, const Scoring& scoring,
                const Scratch& scratch) {
  const HeadSpan& head = kv.heads[static_cast<std::size_t>(kv_head)];
  const std::int64_t num_q_heads = shape.group * shape.num_kv_heads;
  pack_keys(shape, kv, head, tile, scratch);
  for (std::int64_t strip = 0; strip < shape.num_rows(); strip += kStripRows) {
    const std::int64_t rows = std::min(kStripRows, shape.num_rows() - strip);
    for (std::int64_t r = 0; r < rows; ++r) {
      shape.query_key.load_row(shape.query(q, kv_head, strip + r), shape.type, shape.head_dim,
                               scratch.queries + r * kRowStride);
    }
    multiply_keys(shape, scratch.queries, rows, tile.len, scratch);
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t query = (strip + r) / shape.group;
      const std::int64_t q_head = kv_head * shape.group + (strip + r) % shape.group;
      const std::int64_t visible =
          std::clamp<std::int64_t>(shape.visible(head.len, strip + r) - tile.begin, 0, tile.len);
      float* to = floats(scoring.weights, q_head * shape.num_queries + query) +
                  (tile.begin - scoring.range.begin);
      if (visible > 0) {
        kernels.weights(scratch.logits + r * kRowStride, visible, shape.scale,
                        floats(scoring.lse, q_head)[query],
                        floats(scoring.lse, num_q_heads + q_head)[query], to);
      }
      std::fill(to + visible, to + tile.len, 0.0F);
    }
  }
}

}  // namespace

std::int64_t attention_scratch_floats(std::int64_t head_dim) {
  TIDEKV_CHECK_OP(head_dim, <=, kPanelDepth);
  return Scratch(nullptr, head_dim).num_floats;
}

void attend_prompt(const Context& context, DeviceView q, const KvView& kv) {
  const AttentionShape shape(context.kernels, q, kv);
  const Kernels& kernels = context.kernels;
  const std::int64_t scratch_floats = attention_scratch_floats(shape.head_dim);
  for_row_blocks(context, shape, [&](const RowBlock& block, int thread) {
    const Scratch scratch(context.scratch(thread, scratch_floats), shape.head_dim);
    process_block(kernels, shape, q, kv, block, Values::kSum, scratch);
    for (std::int64_t r = 0; r < block.count; ++r) {
      float* out = scratch.out + r * shape.padded_dim;
      kernels.divide_by(out, shape.head_dim, scratch.softmax[r].norm);
      kernels.narrow(out, shape.head_dim, shape.type,
                     shape.query(q, block.kv_head, block.first + r));
    }
  });
}

void window_lse(const Context& context, DeviceView q, const KvView& kv, DeviceView lse) {
  const AttentionShape shape(context.kernels, q, kv);
  const std::int64_t num_q_heads = shape.group * shape.num_kv_heads;
  const std::int64_t scratch_floats = attention_scratch_floats(shape.head_dim);
  for_row_blocks(context, shape, [&](const RowBlock& block, int thread) {
    const Scratch scratch(context.scratch(thread, scratch_floats), shape.head_dim);
    process_block(context.kernels, shape, q, kv, block, Values::kSkip, scratch);
    for (std::int64_t r = 0; r < block.count; ++r) {
      const std::int64_t query = (block.first + r) / shape.group;
      const std::int64_t q_head = block.kv_head * shape.group + (block.first + r) % shape.group;
      floats(lse, q_head)[query] = scratch.softmax[r].max;
      floats(lse, num_q_heads + q_head)[query] = scratch.softmax[r].norm;
    }
  });
}

void score_keys(const Context& context, DeviceView q, const KvView& kv, DeviceView lse,
                KeyRange range, DeviceView weights) {
  const AttentionShape shape(context.kernels, q, kv);
  const std::int64_t num_tiles = ceil_div(range.len(), kKeyTile);
  const std::int64_t scratch_floats = attention_scratch_floats(shape.head_dim);
  context.pool.parallel_for(num_tiles * shape.num_kv_heads, [&](std::int64_t task, int thread) {
    const Scratch scratch(context.scratch(thread, scratch_floats), shape.head_dim);
    const std::int64_t begin = range.begin + task % num_tiles * kKeyTile;
    const Tile tile{begin, std::min(kKeyTile, range.end - begin)};
    score_tile(context.kernels, shape, q, kv, task / num_tiles, tile, {lse, range, weights},
               scratch);
  });
}

}  // namespace tidekv::cpu
