// A block of a matrix product in one thread's scratch: rows of `a` times columns of one product, or
// of several that share the rows. What becomes of the sums is for the operation to say.
//
// Prompts: rows of `a` are widened into a block that stays in the second-level cache, `w` is packed
// 32 rows at a time into a panel that stays in the first, and sums are added up over pieces of
// depth 128 in f32. One chain over the whole depth would be as inexact as it is long
// (tests/reference_4k_test.cc). Quantised weights are expanded on their way into the panel.
//
// For generated tokens weights are multiplied as they are stored: one row cannot make up for
// packing them. The sums then run in another order, so the phase decides and never the number of
// rows.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "base/checked_math.h"
#include "tensor/linear.h"

namespace tidekv::cpu {

// Rows or columns [first, first + count).
struct Range {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// Some columns of a product: those rows of its weights.
struct Columns {
  Linear<DeviceView> linear;
  Range range;
};

// Rows and columns of a block.
struct BlockShape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};
// A block fills a good part of the second-level cache, and no more.
inline constexpr std::int64_t kBlockRows = 288;
inline constexpr std::int64_t kBlockCols = 576;
inline constexpr std::int64_t kBlockSums = 99'840;

// How a product of so many rows and columns is cut: columns of `parts` that belong together count
// as one. The last block of a row or a column may be smaller.
BlockShape block_shape(std::int64_t rows, std::int64_t cols, std::int64_t parts, int num_threads);

class BlockSums {
 public:
  static std::int64_t scratch_floats();

  BlockSums(const Kernels& kernels, float* scratch);

  // Sums of the rows with each of `parts`, their biases added.
  void compute(DeviceView a, const Range& rows, std::span<const Columns> parts, Phase phase);

  // Row r of the first part; the next part is `padded(count)` floats on.
  const float* row(std::int64_t r) const { return sums_ + r * stride_; }
  static std::int64_t padded(std::int64_t count) { return round_up(count, kPanelCols); }
  // Room for kBlockRows * kRowStride floats beside the sums.
  float* spare() const { return a_; }

 private:
  void add_packed(DeviceView a, const Range& rows, std::span<const Columns> parts,
                  std::int64_t k) const;
  void add_as_stored(DeviceView a, const Range& rows, std::span<const Columns> parts,
                     std::int64_t k) const;
  void pack_weights(const Products& products, const Columns& part, std::int64_t col, std::int64_t k,
                    std::int64_t depth) const;
  void add_biases(std::int64_t num_rows, std::span<const Columns> parts) const;

  const Kernels& kernels_;
  float* a_;      // [kBlockRows, kRowStride]
  float* panel_;  // [kSumDepth, kPanelCols]
  float* wide_;   // [kPanelCols, kSumDepth], expanded weights
  float* sums_;   // [rows, stride_]
  std::int64_t stride_ = 0;
};

// [0, n) in pieces of about equal length, at most `most` and a multiple of `step`.
struct Pieces {
  std::int64_t len = 0;  // of one; the last may be shorter
  std::int64_t num = 0;

  Pieces(std::int64_t n, std::int64_t most, std::int64_t step)
      : len(n == 0 ? step : round_up(ceil_div(n, ceil_div(n, most)), step)),
        num(ceil_div(n, len)) {}
};

// A matrix cut into blocks. Those that share columns follow one another.
class BlockGrid {
 public:
  BlockGrid(std::int64_t num_rows, const Pieces& rows, std::int64_t num_cols, const Pieces& cols)
      : num_rows_(num_rows), num_cols_(num_cols), rows_(rows), cols_(cols) {}

  std::int64_t num() const { return rows_.num * cols_.num; }
  Range rows_of(std::int64_t block) const { return piece(rows_, block % rows_.num, num_rows_); }
  Range cols_of(std::int64_t block) const { return piece(cols_, block / rows_.num, num_cols_); }

 private:
  static Range piece(const Pieces& pieces, std::int64_t index, std::int64_t n) {
    const std::int64_t first = index * pieces.len;
    return {first, std::min(pieces.len, n - first)};
  }

  std::int64_t num_rows_;
  std::int64_t num_cols_;
  Pieces rows_;
  Pieces cols_;
};

// Calls body(task, thread) for all tasks: on all threads, or on one where waking the others would
// take longer than all the multiply-adds.
template <typename Body>
void for_blocks(const TaskRunner& pool, std::int64_t num_tasks, std::int64_t num_products,
                const Body& body) {
  constexpr std::int64_t kAloneProducts = 1 << 17;
  if (num_products > kAloneProducts) {
    pool.parallel_for(num_tasks, body);
    return;
  }
  pool.parallel_for(1, [&](std::int64_t, int thread) {
    for (std::int64_t task = 0; task < num_tasks; ++task) {
      body(task, thread);
    }
  });
}

}  // namespace tidekv::cpu
