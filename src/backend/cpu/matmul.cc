// out (+)= a w^T + bias.
//
// A task is a block of rows times a block of columns. It widens its rows of `a` into a block that
// stays in the second-level cache, packs `w` 32 rows at a time into a panel that stays in the
// first, and adds up sums over pieces of depth 128 in f32. One chain over the whole depth would be
// as inexact as it is long (tests/reference_4k_test.cc). Quantised weights are expanded on their
// way into the panel.
//
// For generated tokens weights are multiplied as they are stored: one row cannot make up for
// packing them. The sums then run in another order, so the phase decides and never the number of
// rows.
#include <algorithm>

#include "backend/cpu/operations.h"
#include "base/checked_math.h"

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kMaxRows = 384;
constexpr std::int64_t kMaxCols = 192;
constexpr std::int64_t kMinCols = 64;
constexpr std::int64_t kSumDepth = 128;  // of one chain
static_assert(kMaxRows % kStripRows == 0 && kMaxCols % kPanelCols == 0);
static_assert(kSumDepth <= kPanelDepth && kDotDepth <= kMaxRows * kRowStride);

// Part of the output: rows [row, row + rows), columns [col, col + cols).
struct Block {
  std::int64_t row = 0;
  std::int64_t rows = 0;
  std::int64_t col = 0;
  std::int64_t cols = 0;
};

struct Blocks {
  std::int64_t rows = 0;  // of one block; the last may be shorter
  std::int64_t cols = 0;
  std::int64_t num_row_blocks = 0;
  std::int64_t num_col_blocks = 0;

  // Tasks that share columns of `w` follow one another.
  Block at(std::int64_t task, DeviceView out) const {
    const std::int64_t row = task % num_row_blocks * rows;
    const std::int64_t col = task / num_row_blocks * cols;
    return {row, std::min(rows, out.rows() - row), col, std::min(cols, out.cols() - col)};
  }
};

// Blocks of equal size; narrower ones where there would be too few for the threads.
Blocks cut(std::int64_t rows, std::int64_t cols, int num_threads) {
  constexpr std::int64_t kTasksPerThread = 4;
  Blocks blocks;
  blocks.rows = round_up(ceil_div(rows, ceil_div(rows, kMaxRows)), kStripRows);
  blocks.num_row_blocks = ceil_div(rows, blocks.rows);
  const std::int64_t wanted = ceil_div(kTasksPerThread * num_threads, blocks.num_row_blocks);
  const std::int64_t narrow = std::clamp(ceil_div(cols, wanted), kMinCols, kMaxCols);
  blocks.cols = round_up(ceil_div(cols, ceil_div(cols, narrow)), kPanelCols);
  blocks.num_col_blocks = ceil_div(cols, blocks.cols);
  return blocks;
}

struct Scratch {
  float* a;      // [kMaxRows, kRowStride]
  float* panel;  // [kSumDepth, kPanelCols]
  float* sums;   // [kMaxRows, kMaxCols]
  float* wide;   // [kPanelCols, kSumDepth], expanded weights

  explicit Scratch(float* base)
      : a(base),
        panel(a + kMaxRows * kRowStride),
        sums(panel + kSumDepth * kPanelCols),
        wide(sums + kMaxRows * kMaxCols) {}
};

// Rows [row, row + rows) of `w`, columns [k, k + depth), into the panel.
void pack_weights(const Kernels& kernels, const Products& products, DeviceView w, std::int64_t row,
                  std::int64_t rows, std::int64_t k, std::int64_t depth, const Scratch& scratch) {
  if (!is_quantised(w.dtype())) {
    products.pack_columns(address(w, row, k), element_of(w.dtype()), w.cols(), rows, depth,
                          scratch.panel);
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) {
    kernels.expand(address(w, row + r), block_type_of(w.dtype()), k, depth,
                   scratch.wide + r * kSumDepth);
  }
  kernels.pack_columns(scratch.wide, Element::kF32, kSumDepth, rows, depth, scratch.panel);
}

void accumulate_depth(const Kernels& kernels, DeviceView a, DeviceView w, const Block& block,
                      std::int64_t k, const Scratch& scratch) {
  const std::int64_t depth = std::min(kSumDepth, a.cols() - k);
  const Products products =
      products_of(kernels, element_of(a.dtype()),
                  is_quantised(w.dtype()) ? Element::kF32 : element_of(w.dtype()));
  for (std::int64_t r = 0; r < block.rows; ++r) {
    products.load_row(address(a, block.row + r, k), element_of(a.dtype()), depth,
                      scratch.a + r * kRowStride);
  }
  // Strips of equal height: a low one at the end would not keep the multipliers busy.
  const std::int64_t strip_rows = ceil_div(block.rows, ceil_div(block.rows, kStripRows));
  for (std::int64_t c = 0; c < block.cols; c += kPanelCols) {
    pack_weights(kernels, products, w, block.col + c, std::min(kPanelCols, block.cols - c), k,
                 depth, scratch);
    for (std::int64_t r = 0; r < block.rows; r += strip_rows) {
      products.multiply(scratch.a + r * kRowStride, scratch.panel,
                        std::min(strip_rows, block.rows - r), products.num_units(depth),
                        k == 0 ? Start::kZero : Start::kAdd, scratch.sums + r * kMaxCols + c,
                        kMaxCols);
    }
  }
}

// The same sums straight from the rows of `w`, one row of `a` after the other.
void accumulate_dots(const Kernels& kernels, DeviceView a, DeviceView w, const Block& block,
                     std::int64_t k, const Scratch& scratch) {
  const std::int64_t depth = std::min(kDotDepth, a.cols() - k);
  const Start start = k == 0 ? Start::kZero : Start::kAdd;
  for (std::int64_t r = 0; r < block.rows; ++r) {
    float* sums = scratch.sums + r * kMaxCols;
    kernels.widen(address(a, block.row + r, k), element_of(a.dtype()), depth, scratch.a);
    if (is_quantised(w.dtype())) {
      const BlockRows rows{address(w, block.col, k), block_type_of(w.dtype()),
                           row_bytes(w.dtype(), w.cols()), block.cols};
      kernels.block_dots(rows, depth, scratch.a, start, sums);
    } else {
      const ElementRows rows{address(w, block.col, k), element_of(w.dtype()), w.cols(), block.cols};
      kernels.dots(rows, depth, {scratch.a, 0, 1}, start, {sums, 0, 1});
    }
  }
}

void store_block(const Kernels& kernels, const Block& block, const MatmulOptions& options,
                 const Scratch& scratch, DeviceView out) {
  const auto narrow = options.mode == MatmulMode::kAccumulate ? kernels.narrow_add : kernels.narrow;
  const DeviceView& bias = options.bias;
  float* added = scratch.a;  // its rows are done with
  if (bias.rows() > 0) {
    kernels.widen(address(bias, 0, block.col), element_of(bias.dtype()), block.cols, added);
  }
  for (std::int64_t r = 0; r < block.rows; ++r) {
    if (bias.rows() > 0) {
      kernels.narrow_add(added, block.cols, Element::kF32, scratch.sums + r * kMaxCols);
    }
    narrow(scratch.sums + r * kMaxCols, block.cols, element_of(out.dtype()),
           address(out, block.row + r, block.col));
  }
}

void compute_block(const Kernels& kernels, DeviceView a, DeviceView w, const Block& block,
                   const MatmulOptions& options, const Scratch& scratch, DeviceView out) {
  const bool as_stored = options.phase == Phase::kDecode;
  const auto accumulate = as_stored ? accumulate_dots : accumulate_depth;
  std::int64_t k = 0;
  do {  // once even for depth 0: the empty sum is 0
    accumulate(kernels, a, w, block, k, scratch);
    k += as_stored ? kDotDepth : kSumDepth;
  } while (k < a.cols());
  store_block(kernels, block, options, scratch, out);
}

}  // namespace

std::int64_t matmul_scratch_floats() {
  return kMaxRows * kRowStride + kSumDepth * kPanelCols + kMaxRows * kMaxCols +
         kPanelCols * kSumDepth;
}

void matmul(const Context& context, DeviceView a, DeviceView w, DeviceView out,
            const MatmulOptions& options) {
  constexpr std::int64_t kAloneProducts = 1 << 17;  // waking threads would take longer
  if (out.rows() == 0 || out.cols() == 0) {
    return;
  }
  const Blocks blocks = cut(out.rows(), out.cols(), context.pool.num_threads());
  const std::int64_t num_tasks = blocks.num_row_blocks * blocks.num_col_blocks;
  const auto compute = [&](std::int64_t task, int thread) {
    const Scratch scratch(context.scratch(thread, matmul_scratch_floats()));
    compute_block(context.kernels, a, w, blocks.at(task, out), options, scratch, out);
  };
  if (out.rows() * out.cols() * a.cols() > kAloneProducts) {
    context.pool.parallel_for(num_tasks, compute);
    return;
  }
  context.pool.parallel_for(1, [&](std::int64_t, int thread) {
    for (std::int64_t task = 0; task < num_tasks; ++task) {
      compute(task, thread);
    }
  });
}

}  // namespace tidekv::cpu
