// attend for generated tokens: a row of queries and all the keys of a compact cache.
//
// Keys and values are used as they are stored: packing them, as prefill does, would cost more than
// one row can use. The keys of a head are cut into parts by the head's length alone, so that parts
// run side by side and no thread count changes a bit; their results are put together in order.
#include <algorithm>

#include "backend/cpu/attention_shape.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/running_softmax.h"
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
struct Scratch {
  FloatRows queries;   // [kMaxHeads, head_dim]
  FloatRows products;  // [kMaxHeads, kKeyTile], then the probabilities

  static constexpr std::int64_t kFloats = kMaxHeads * (kPanelDepth + kKeyTile);
  explicit Scratch(float* base)
      : queries{base, kPanelDepth, kMaxHeads},
        products{base + kMaxHeads * kPanelDepth, kKeyTile, kMaxHeads} {}
  void keep(std::int64_t heads) { queries.rows = products.rows = heads; }
};

class Partials {
 public:
  Partials(const Context& context, std::int64_t head_dim)
      : floats_each_(round_up(kSoftmaxFloats + head_dim, 16)),
        base_(context.scratch(0, attention_scratch_floats(head_dim)) + Scratch::kFloats),
        num_blocks_((attention_scratch_floats(head_dim) - Scratch::kFloats) /
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

struct Operands {
  const Kernels& kernels;
  AttentionShape shape;
  DeviceView q;
  const KvView& kv;

  const HeadSpan& head(const HeadBlock& block) const {
    return kv.heads[static_cast<std::size_t>(block.kv_head)];
  }
  std::byte* query(const HeadBlock& block, std::int64_t g) const {
    return shape.query(q, block.kv_head, block.row * shape.group + block.first + g);
  }
  Parts parts(const HeadBlock& block) const {
    return Parts(shape.visible(head(block), block.row * shape.group));
  }
};

ElementRows rows_of(const Operands& operands, DeviceView slab, std::int64_t first,
                    std::int64_t count) {
  return {address(slab, first), operands.shape.type, operands.shape.head_dim, count};
}

// The query heads of a block over one part of the keys.
void sum_part(const Operands& operands, const HeadBlock& block, KeyRange keys, Scratch scratch,
              RunningSoftmax (&softmax)[kMaxHeads], FloatRows sums) {
  const auto& [kernels, shape, q, kv] = operands;
  scratch.keep(block.count);
  sums.rows = block.count;
  for (std::int64_t g = 0; g < block.count; ++g) {
    kernels.widen(operands.query(block, g), shape.type, shape.head_dim, scratch.queries.row(g));
    std::fill_n(sums.row(g), shape.head_dim, 0.0F);
  }
  for (std::int64_t begin = keys.begin; begin < keys.end; begin += kKeyTile) {
    const std::int64_t len = std::min(kKeyTile, keys.end - begin);
    const std::int64_t slot = operands.head(block).offset + begin;
    kernels.dots(rows_of(operands, kv.keys, slot, len), shape.head_dim, scratch.queries,
                 Start::kZero, scratch.products);
    for (std::int64_t g = 0; g < block.count; ++g) {
      const float shrink = softmax[g].take(kernels, shape.scale, scratch.products.row(g), len);
      if (shrink != 1.0F) {
        kernels.multiply_by(sums.row(g), shape.head_dim, shrink);
      }
    }
    kernels.add_rows(rows_of(operands, kv.values, slot, len), shape.head_dim, scratch.products,
                     sums);
  }
}

// All parts of one query head into its output, in place of its query.
void combine(const Operands& operands, const HeadBlock& block, std::int64_t g,
             const Partials& partials, std::int64_t slot) {
  const auto& [kernels, shape, q, kv] = operands;
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

}  // namespace

void attend_row_by_row(const Context& context, DeviceView q, const KvView& kv) {
  const Operands operands{context.kernels, AttentionShape(context.kernels, q, kv), q, kv};
  const Partials partials(context, operands.shape.head_dim);
  const std::int64_t blocks_per_head = ceil_div(operands.shape.group, kMaxHeads);
  const std::int64_t blocks_per_row = operands.shape.num_kv_heads * blocks_per_head;
  const auto block_at = [&](std::int64_t block) {
    const std::int64_t first = block % blocks_per_head * kMaxHeads;
    return HeadBlock{block / blocks_per_row, block % blocks_per_row / blocks_per_head, first,
                     std::min(kMaxHeads, operands.shape.group - first)};
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
               Scratch(context.scratch(thread, Scratch::kFloats)), softmax,
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

}  // namespace tidekv::cpu
