// Queries, keys and values: three products at once. A block's columns are whole heads, so that a
// head is normed and rotated, and lies where it stays, before it leaves the cache.
#include <array>
#include <cstring>

#include "backend/cpu/block_sums.h"
#include "backend/cpu/operations.h"

namespace tidekv::cpu {
namespace {

// Elements 0, 2, 4, ... of a head, then 1, 3, 5, ...; `copy` has room for the head.
template <typename T>
void part_pairs(std::byte* head, std::int64_t head_dim, std::byte* copy) {
  std::memcpy(copy, head, static_cast<std::size_t>(head_dim) * sizeof(T));
  for (std::int64_t i = 0; i < head_dim / 2; ++i) {
    constexpr std::size_t kBytes = sizeof(T);
    const auto at = static_cast<std::size_t>(i) * kBytes;
    std::memcpy(head + at, copy + 2 * at, kBytes);
    std::memcpy(head + at + static_cast<std::size_t>(head_dim / 2) * kBytes, copy + 2 * at + kBytes,
                kBytes);
  }
}

// Rotates the pairs of one head in place, and puts them at (i, i + D/2). `angles`: D/2 cosines,
// then D/2 sines; `copy` has room for the head.
void rotate_head(const Kernels& kernels, std::byte* head, Element type, const float* angles,
                 std::int64_t head_dim, RopePairs pairs, float* copy) {
  const auto part = type == Element::kF32 ? part_pairs<float> : part_pairs<std::uint16_t>;
  if (pairs == RopePairs::kAdjacent) {
    part(head, head_dim, reinterpret_cast<std::byte*>(copy));
  }
  kernels.rotate(head, type, angles, angles + head_dim / 2, head_dim / 2);
}

// One of the three products.
struct Part {
  Linear<DeviceView> linear;
  DeviceView norm;  // no rows: heads are not normed
  bool rotates;
  Range rows;  // of `a`
  // Rows [row, heads * D] or, with spans, slots [slot, D] behind those that each head has.
  DeviceView to;
  std::span<const HeadSpan> spans;

  std::byte* place(std::int64_t row, std::int64_t head, std::int64_t head_dim) const {
    if (spans.empty()) {
      return address(to, row, head * head_dim);
    }
    const HeadSpan& span = spans[static_cast<std::size_t>(head)];
    return address(to, span.offset + span.len + row);
  }
};

std::int64_t num_sums(std::span<const Part> parts) {
  std::int64_t sums = 0;
  for (const Part& part : parts) {
    sums += part.rows.count * part.linear.weight.rows();
  }
  return sums;
}

// Of all parts alike, so that a block has about as many columns as one of an ordinary product.
struct HeadBlocks {
  std::int64_t rows;
  std::int64_t heads;
};

HeadBlocks head_blocks(const Context& context, std::span<const Part> parts, std::int64_t head_dim) {
  TIDEKV_CHECK_OP(head_dim, <=, kBlockSums / kBlockRows);
  const std::int64_t num_rows = parts.back().rows.count;
  const BlockShape shape =
      block_shape(num_rows, num_sums(parts) / num_rows, 1, context.pool.num_threads());
  return {shape.rows, std::max<std::int64_t>(1, shape.cols / head_dim)};
}

class Projector {
 public:
  Projector(const Context& context, DeviceView a, const HeadProjection& projection,
            std::int64_t head_dim)
      : context_(context), a_(a), projection_(projection), head_dim_(head_dim) {}

  // Rows and heads of a part that one task has.
  void run(const Part& part, const Range& rows, const Range& heads, int thread) const {
    const Columns columns{part.linear, {heads.first * head_dim_, heads.count * head_dim_}};
    BlockSums sums(context_.kernels, context_.scratch(thread, BlockSums::scratch_floats()));
    sums.compute(a_, {part.rows.first + rows.first, rows.count}, {&columns, 1}, projection_.phase);
    for (std::int64_t r = 0; r < rows.count; ++r) {
      for (std::int64_t h = 0; h < heads.count; ++h) {
        std::byte* head = part.place(rows.first + r, heads.first + h, head_dim_);
        context_.kernels.narrow(sums.row(r) + h * head_dim_, head_dim_, element_of(a_.dtype()),
                                head);
        finish(part, part.rows.first + rows.first + r, head, sums.spare());
      }
    }
  }

 private:
  // Norms and rotates a stored head of row `row` of `a`; `copy` has room for the head.
  void finish(const Part& part, std::int64_t row, std::byte* head, float* copy) const {
    const Element type = element_of(a_.dtype());
    if (part.norm.rows() > 0) {
      context_.kernels.rms_norm(head, type, part.norm.device_ptr(), element_of(part.norm.dtype()),
                                head_dim_, projection_.eps, head);
    }
    if (part.rotates) {
      rotate_head(context_.kernels, head, type, floats(projection_.angles, row), head_dim_,
                  projection_.pairs, copy);
    }
  }

  const Context& context_;
  DeviceView a_;
  const HeadProjection& projection_;
  std::int64_t head_dim_;
};

}  // namespace

void project_heads(const Context& context, DeviceView a, const HeadProjection& projection,
                   DeviceView queries, const KvView& kv) {
  if (a.rows() == 0) {
    return;
  }
  const Range all{0, a.rows()};
  const Range newest{a.rows() - queries.rows(), queries.rows()};
  const std::array<Part, 3> parts = {
      {{projection.q, projection.q_norm, true, newest, queries, {}},
       {projection.k, projection.k_norm, true, all, kv.keys, kv.heads},
       {projection.v, {}, false, all, kv.values, kv.heads}}};
  const std::int64_t head_dim = kv.head_dim();
  const HeadBlocks most = head_blocks(context, parts, head_dim);
  const auto cut = [&](const Part& part) {
    const std::int64_t num_heads = part.linear.weight.rows() / head_dim;
    return BlockGrid(part.rows.count, Pieces(part.rows.count, most.rows, kStripRows), num_heads,
                     Pieces(num_heads, most.heads, 1));
  };
  const std::array<BlockGrid, 3> blocks = {cut(parts[0]), cut(parts[1]), cut(parts[2])};
  const Projector projector(context, a, projection, head_dim);
  const auto compute = [&](std::int64_t task, int thread) {
    std::size_t i = 0;
    for (; task >= blocks[i].num(); ++i) {
      task -= blocks[i].num();
    }
    projector.run(parts[i], blocks[i].rows_of(task), blocks[i].cols_of(task), thread);
  };
  for_blocks(context.pool, blocks[0].num() + blocks[1].num() + blocks[2].num(),
             num_sums(parts) * a.cols(), compute);
}

}  // namespace tidekv::cpu
