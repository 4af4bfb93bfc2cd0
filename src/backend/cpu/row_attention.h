// Attention of generated tokens: a row of queries and all the keys of a cache, whatever its layout.
//
// The keys of a head are cut into parts by the head's length alone, so that parts run side by side
// and no thread count changes a bit; their results are put together in order.
//
// A Cache says how long a head is, len(kv_head), and gives the keys and values of a range of it as
// rows, keys(kernels, kv_head, range, room) and values(...), of which it may make floats in `room`:
// room_floats() of them, enough for a tile.
#pragma once

#include <algorithm>

#include "backend/cpu/attention_shape.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/running_softmax.h"
#include "base/check.h"
#include "base/checked_math.h"

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kMaxParts = 16;  // of the keys of a head
constexpr std::int64_t kMaxHeads = 8;   // query heads that share the keys of a task

// Parts of equal length, in whole tiles.
struct Parts {
  std::int64_t num_keys;
  std::int64_t len;
  std::int64_t count;

  explicit Parts(std::int64_t keys)
      : num_keys(keys),
        len(round_up(ceil_div(keys, kMaxParts), kKeyTile)),
        count(ceil_div(keys, len)) {}
  KeyRange at(std::int64_t part) const {
    return {part * len, std::min(num_keys, (part + 1) * len)};
  }
};

// Query heads [first, first + count) of a KV head's group, in one row.
struct HeadBlock {
  std::int64_t row = 0;
  std::int64_t kv_head = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// What one part of the keys comes to for one query head.
struct Partial {
  RunningSoftmax* softmax;
  float* sum;  // [head_dim], undivided
};

// Scratch of one thread; behind it the first thread's slice holds the partial results of all.
struct RowScratch {
  FloatRows queries;   // [kMaxHeads, head_dim]
  FloatRows products;  // [kMaxHeads, kKeyTile], then the probabilities
  float* room;         // of a tile, for caches that need it

  static constexpr std::int64_t kFloats = kMaxHeads * (kPanelDepth + kKeyTile);
  static std::int64_t floats(std::int64_t room_floats) { return kFloats + room_floats; }
  explicit RowScratch(float* base)
      : queries{base, kPanelDepth, kMaxHeads},
        products{base + kMaxHeads * kPanelDepth, kKeyTile, kMaxHeads},
        room(base + kFloats) {}
  void keep(std::int64_t heads) { queries.rows = products.rows = heads; }
};

class Partials {
 public:
  Partials(const Context& context, std::int64_t head_dim, std::int64_t scratch_floats)
      : floats_each_(round_up(kSoftmaxFloats + head_dim, 16)),
        base_(context.scratch(0, attention_scratch_floats(head_dim)) + scratch_floats),
        num_blocks_((attention_scratch_floats(head_dim) - scratch_floats) /
                    (kMaxHeads * kMaxParts * floats_each_)) {
    TIDEKV_CHECK_OP(num_blocks_, >, 0);
  }

  // Head blocks there is room for.
  std::int64_t num_blocks() const { return num_blocks_; }
  Partial at(std::int64_t block, std::int64_t part, std::int64_t head) const {
    float* floats = base_ + ((block * kMaxParts + part) * kMaxHeads + head) * floats_each_;
    return {reinterpret_cast<RunningSoftmax*>(floats), floats + kSoftmaxFloats};
  }
  // The sums of all heads of a part.
  FloatRows sums(std::int64_t block, std::int64_t part) const {
    return {at(block, part, 0).sum, floats_each_, kMaxHeads};
  }

 private:
  static constexpr std::int64_t kSoftmaxFloats = sizeof(RunningSoftmax) / sizeof(float);
  std::int64_t floats_each_;
  float* base_;
  std::int64_t num_blocks_;
};

template <typename Cache>
struct Operands {
  const Kernels& kernels;
  AttentionShape shape;
  DeviceView q;
  const Cache& cache;

  std::byte* query(const HeadBlock& block, std::int64_t g) const {
    return shape.query(q, block.kv_head, block.row * shape.group + block.first + g);
  }
  Parts parts(const HeadBlock& block) const {
    return Parts(shape.visible(cache.len(block.kv_head), block.row * shape.group));
  }
};

// The query heads of a block over one part of the keys.
template <typename Cache>
void sum_part(const Operands<Cache>& operands, const HeadBlock& block, KeyRange keys,
              RowScratch scratch, RunningSoftmax (&softmax)[kMaxHeads], FloatRows sums) {
  const auto& [kernels, shape, q, cache] = operands;
  scratch.keep(block.count);
  sums.rows = block.count;
  for (std::int64_t g = 0; g < block.count; ++g) {
    kernels.widen(operands.query(block, g), shape.type, shape.head_dim, scratch.queries.row(g));
    std::fill_n(sums.row(g), shape.head_dim, 0.0F);
  }
  for (std::int64_t begin = keys.begin; begin < keys.end; begin += kKeyTile) {
    const KeyRange tile{begin, std::min(begin + kKeyTile, keys.end)};
    kernels.dots(cache.keys(kernels, block.kv_head, tile, scratch.room), shape.head_dim,
                 scratch.queries, Start::kZero, scratch.products);
    for (std::int64_t g = 0; g < block.count; ++g) {
      const float shrink =
          softmax[g].take(kernels, shape.scale, scratch.products.row(g), tile.len());
      if (shrink != 1.0F) {
        kernels.multiply_by(sums.row(g), shape.head_dim, shrink);
      }
    }
    kernels.add_rows(cache.values(kernels, block.kv_head, tile, scratch.room), shape.head_dim,
                     scratch.products, sums);
  }
}

// All parts of one query head into its output, in place of its query.
template <typename Cache>
void combine(const Operands<Cache>& operands, const HeadBlock& block, std::int64_t g,
             const Partials& partials, std::int64_t slot) {
  const auto& [kernels, shape, q, cache] = operands;
  const std::int64_t count = operands.parts(block).count;
  const Partial all = partials.at(slot, 0, g);
  for (std::int64_t part = 1; part < count; ++part) {
    const Partial next = partials.at(slot, part, g);
    const float max = std::max(all.softmax->max, next.softmax->max);
    const float shrink = RunningSoftmax::shrink(kernels, all.softmax->max, max);
    const float next_shrink = RunningSoftmax::shrink(kernels, next.softmax->max, max);
    kernels.multiply_by(all.sum, shape.head_dim, shrink);
    kernels.multiply_by(next.sum, shape.head_dim, next_shrink);
    kernels.narrow_add(next.sum, shape.head_dim, Element::kF32, all.sum);
    all.softmax->norm = all.softmax->norm * shrink + next.softmax->norm * next_shrink;
    all.softmax->max = max;
  }
  kernels.divide_by(all.sum, shape.head_dim, all.softmax->norm);
  kernels.narrow(all.sum, shape.head_dim, shape.type, operands.query(block, g));
}

template <typename Cache>
void attend_rows(const Context& context, DeviceView q, const AttentionShape& shape,
                 const Cache& cache) {
  const Operands<Cache> operands{context.kernels, shape, q, cache};
  const std::int64_t scratch_floats = RowScratch::floats(cache.room_floats());
  const Partials partials(context, shape.head_dim, scratch_floats);
  const std::int64_t blocks_per_head = ceil_div(shape.group, kMaxHeads);
  const std::int64_t blocks_per_row = shape.num_kv_heads * blocks_per_head;
  const auto block_at = [&](std::int64_t block) {
    const std::int64_t first = block % blocks_per_head * kMaxHeads;
    return HeadBlock{block / blocks_per_row, block % blocks_per_row / blocks_per_head, first,
                     std::min(kMaxHeads, shape.group - first)};
  };
  const std::int64_t num_blocks = q.rows() * blocks_per_row;
  for (std::int64_t first = 0; first < num_blocks; first += partials.num_blocks()) {
    const std::int64_t count = std::min(partials.num_blocks(), num_blocks - first);
    context.pool.parallel_for(count * kMaxParts, [&](std::int64_t task, int thread) {
      const HeadBlock block = block_at(first + task / kMaxParts);
      const std::int64_t part = task % kMaxParts;
      if (part >= operands.parts(block).count) {
        return;
      }
      RunningSoftmax softmax[kMaxHeads];
      sum_part(operands, block, operands.parts(block).at(part),
               RowScratch{context.scratch(thread, scratch_floats)}, softmax,
               partials.sums(task / kMaxParts, part));
      for (std::int64_t g = 0; g < block.count; ++g) {
        *partials.at(task / kMaxParts, part, g).softmax = softmax[g];
      }
    });
    for (std::int64_t slot = 0; slot < count; ++slot) {
      const HeadBlock block = block_at(first + slot);
      for (std::int64_t g = 0; g < block.count; ++g) {
        combine(operands, block, g, partials, slot);
      }
    }
  }
}

}  // namespace
}  // namespace tidekv::cpu
