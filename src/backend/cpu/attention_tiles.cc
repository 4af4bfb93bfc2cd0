#include "backend/cpu/attention_tiles.h"

#include <memory>

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kSoftmaxFloats = sizeof(RunningSoftmax) / sizeof(float);

// Rows [first, first + count) of a strip.
struct StripRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// out (+)= the rows' probabilities of `keys`, counted within the tile, times the values.
void multiply_values(const AttentionOperands& on, const StripRows& rows, const KeyTile& keys,
                     Start start, float* out, const AttentionScratch& scratch) {
  for (std::int64_t col = 0; col < on.shape.padded_dim; col += kPanelCols) {
    on.kernels.multiply(scratch.logits + rows.first * kRowStride + keys.begin,
                        scratch.values + col * kKeyTile + keys.begin * kPanelCols, rows.count,
                        keys.len, start, out + rows.first * on.shape.padded_dim + col,
                        on.shape.padded_dim);
  }
}

// How many entries of a row of the mask, its first, are 0.
template <typename Bits>
std::int64_t zeros(const std::byte* row, std::int64_t len) {
  const Bits* const entries = reinterpret_cast<const Bits*>(row);
  return std::partition_point(entries, entries + len, [](Bits bits) { return bits == 0; }) -
         entries;
}

// One strip of the block takes one tile.
void process_strip(const AttentionOperands& on, const RowBlock& block, std::int64_t strip,
                   const KeyTile& tile, Values values, const AttentionScratch& scratch) {
  const auto& [kernels, shape, q, kv, mask] = on;
  const std::int64_t rows = std::min(kStripRows, block.count - strip);
  std::int64_t visible[kStripRows];
  for (std::int64_t r = 0; r < rows; ++r) {
    visible[r] = on.visible(block, strip + r, tile);
  }
  if (visible[rows - 1] == 0) {
    return;
  }
  multiply_keys(shape, scratch.queries + strip * kRowStride, rows, visible[rows - 1], scratch);
  for (std::int64_t r = 0; r < rows; ++r) {
    if (visible[r] > 0) {
      const float shrink = scratch.softmax[strip + r].take(
          kernels, shape.scale, scratch.logits + r * kRowStride, visible[r]);
      if (values == Values::kSum && shrink != 1.0F) {
        kernels.multiply_by(scratch.out + (strip + r) * shape.padded_dim, shape.padded_dim, shrink);
      }
    }
  }
  if (values == Values::kSum) {
    add_values(on, rows, visible, scratch.out + strip * shape.padded_dim, scratch);
  }
}

}  // namespace

AttentionScratch::AttentionScratch(float* base, std::int64_t head_dim) {
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

std::int64_t attention_scratch_floats(std::int64_t head_dim) {
  TIDEKV_CHECK_OP(head_dim, <=, kPanelDepth);
  return AttentionScratch(nullptr, head_dim).num_floats;
}

std::int64_t AttentionOperands::visible(const RowBlock& block, std::int64_t row,
                                        const KeyTile& tile) const {
  const std::int64_t of_head = block.first + row;
  if (mask.rows() == 0) {
    return std::clamp<std::int64_t>(shape.visible(head(block).len, of_head) - tile.begin, 0,
                                    tile.len);
  }
  // The last column stands for the last key of every head.
  const std::int64_t col = mask.cols() - head(block).len + tile.begin;
  const std::byte* const entries = address(mask, of_head / shape.group, col);
  return mask.dtype() == DType::kF32 ? zeros<std::uint32_t>(entries, tile.len)
                                     : zeros<std::uint16_t>(entries, tile.len);
}

void load_queries(const AttentionOperands& on, const RowBlock& block,
                  const AttentionScratch& scratch) {
  const AttentionShape& shape = on.shape;
  for (std::int64_t r = 0; r < block.count; ++r) {
    shape.query_key.load_row(shape.query(on.q, block.kv_head, block.first + r), shape.type,
                             shape.head_dim, scratch.queries + r * kRowStride);
  }
}

void pack_keys(const AttentionOperands& on, const RowBlock& block, const KeyTile& tile,
               const AttentionScratch& scratch) {
  const AttentionShape& shape = on.shape;
  for (std::int64_t key = 0; key < tile.len; key += kPanelCols) {
    shape.query_key.pack_columns(address(on.kv.keys, on.head(block).offset + tile.begin + key),
                                 shape.type, shape.head_dim, std::min(kPanelCols, tile.len - key),
                                 shape.head_dim, scratch.keys + key * shape.head_dim);
  }
}

void pack_values(const AttentionOperands& on, const RowBlock& block, const KeyTile& tile,
                 const AttentionScratch& scratch) {
  const AttentionShape& shape = on.shape;
  for (std::int64_t col = 0; col < shape.head_dim; col += kPanelCols) {
    on.kernels.pack_rows(address(on.kv.values, on.head(block).offset + tile.begin, col), shape.type,
                         shape.head_dim, tile.len, std::min(kPanelCols, shape.head_dim - col),
                         scratch.values + col * kKeyTile);
  }
}

void multiply_keys(const AttentionShape& shape, const float* queries, std::int64_t rows,
                   std::int64_t num_keys, const AttentionScratch& scratch) {
  for (std::int64_t key = 0; key < num_keys; key += kPanelCols) {
    shape.query_key.multiply(queries, scratch.keys + key * shape.head_dim, rows,
                             shape.query_key.num_units(shape.head_dim), Start::kZero,
                             scratch.logits + key, kRowStride);
  }
}

void add_values(const AttentionOperands& on, std::int64_t rows, const std::int64_t* visible,
                float* out, const AttentionScratch& scratch) {
  const std::int64_t seen_by_all = visible[0];
  const std::int64_t padded_dim = on.shape.padded_dim;
  if (visible[rows - 1] == seen_by_all) {
    multiply_values(on, {0, rows}, {0, seen_by_all}, Start::kAdd, out, scratch);
    return;
  }
  // Near the diagonal later rows see a few keys more. A masked key is not multiplied by zero but
  // left out: its value may be infinite.
  if (seen_by_all > 0) {
    multiply_values(on, {0, rows}, {0, seen_by_all}, Start::kZero, scratch.tile_out, scratch);
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    if (visible[r] > seen_by_all) {
      multiply_values(on, {r, 1}, {seen_by_all, visible[r] - seen_by_all},
                      seen_by_all > 0 ? Start::kContinue : Start::kZero, scratch.tile_out, scratch);
    }
    if (visible[r] > 0) {
      on.kernels.narrow_add(scratch.tile_out + r * padded_dim, padded_dim, Element::kF32,
                            out + r * padded_dim);
    }
  }
}

void store_output(const AttentionOperands& on, const RowBlock& block,
                  const AttentionScratch& scratch) {
  const AttentionShape& shape = on.shape;
  for (std::int64_t r = 0; r < block.count; ++r) {
    float* out = scratch.out + r * shape.padded_dim;
    on.kernels.divide_by(out, shape.head_dim, scratch.softmax[r].norm);
    on.kernels.narrow(out, shape.head_dim, shape.type,
                      shape.query(on.q, block.kv_head, block.first + r));
  }
}

void store_lse(const AttentionOperands& on, const RowBlock& block, const LseColumns& lse,
               const AttentionScratch& scratch) {
  const AttentionShape& shape = on.shape;
  const std::int64_t num_q_heads = lse.lse.rows() / 2;  // of the layer
  const std::int64_t first_q_head = (shape.first_head + block.kv_head) * shape.group;
  const std::int64_t first_query = shape.num_queries - lse.count;
  for (std::int64_t r = std::max<std::int64_t>(0, first_query * shape.group - block.first);
       r < block.count; ++r) {
    const std::int64_t col = lse.begin + (block.first + r) / shape.group - first_query;
    const std::int64_t q_head = first_q_head + (block.first + r) % shape.group;
    floats(lse.lse, q_head)[col] = scratch.softmax[r].max;
    floats(lse.lse, num_q_heads + q_head)[col] = scratch.softmax[r].norm;
  }
}

void walk_keys(const AttentionOperands& on, const RowBlock& block, Values values,
               const AttentionScratch& scratch) {
  load_queries(on, block, scratch);
  std::uninitialized_fill_n(scratch.softmax, block.count, RunningSoftmax{});
  if (values == Values::kSum) {
    std::fill_n(scratch.out, block.count * on.shape.padded_dim, 0.0F);
  }
  const std::int64_t end = on.visible(block, block.count - 1, {0, on.head(block).len});
  for (std::int64_t begin = 0; begin < end; begin += kKeyTile) {
    const KeyTile tile{begin, std::min(kKeyTile, end - begin)};
    pack_keys(on, block, tile, scratch);
    if (values == Values::kSum) {
      pack_values(on, block, tile, scratch);
    }
    for (std::int64_t strip = 0; strip < block.count; strip += kStripRows) {
      process_strip(on, block, strip, tile, values, scratch);
    }
  }
}

}  // namespace tidekv::cpu
