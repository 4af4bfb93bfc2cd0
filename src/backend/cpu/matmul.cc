// out (+)= a w^T + bias, and two such products with what joins them. A task is a block of rows
// times a block of columns (block_sums.h).
#include <array>

#include "backend/cpu/block_sums.h"
#include "backend/cpu/operations.h"

namespace tidekv::cpu {
namespace {

struct Block {
  RowRange rows;
  std::int64_t col = 0;
  std::int64_t cols = 0;
};

// How [rows, cols] is cut into blocks.
struct Blocks {
  std::int64_t num_rows;
  std::int64_t num_cols;
  Pieces rows;
  Pieces cols;

  Blocks(DeviceView out, const BlockLimits& limits, int num_threads)
      : num_rows(out.rows()),
        num_cols(out.cols()),
        rows(num_rows, limits.rows, kStripRows),
        cols(num_cols, block_cols(num_cols, limits.cols, rows.num, num_threads), kPanelCols) {}

  std::int64_t num() const { return rows.num * cols.num; }
  // Tasks that share columns of `w` follow one another.
  Block at(std::int64_t task) const {
    const std::int64_t row = task % rows.num * rows.len;
    const std::int64_t col = task / rows.num * cols.len;
    return {{row, std::min(rows.len, num_rows - row)}, col, std::min(cols.len, num_cols - col)};
  }
};

}  // namespace

std::int64_t matmul_scratch_floats() { return BlockSums::scratch_floats(); }

void matmul(const Context& context, DeviceView a, DeviceView w, DeviceView out,
            const MatmulOptions& options) {
  if (out.rows() == 0 || out.cols() == 0) {
    return;
  }
  const Blocks blocks(out, kTallBlock, context.pool.num_threads());
  const auto narrow =
      options.mode == MatmulMode::kAccumulate ? context.kernels.narrow_add : context.kernels.narrow;
  const auto compute = [&](std::int64_t task, int thread) {
    const Block block = blocks.at(task);
    const Columns columns{{w, options.bias}, block.col, block.cols};
    BlockSums sums(context.kernels, context.scratch(thread, BlockSums::scratch_floats()));
    sums.compute(a, block.rows, {&columns, 1}, options.phase);
    for (std::int64_t r = 0; r < block.rows.count; ++r) {
      narrow(sums.row(r), block.cols, element_of(out.dtype()),
             address(out, block.rows.first + r, block.col));
    }
  };
  for_blocks(context.pool, blocks.num(), out.rows() * out.cols() * a.cols(), compute);
}

void gated_matmul(const Context& context, DeviceView a, const Linear<DeviceView>& gate,
                  const Linear<DeviceView>& up, DeviceView out, Phase phase) {
  constexpr BlockLimits kLimits{kWideBlock.rows, kWideBlock.cols / 2};
  if (out.rows() == 0 || out.cols() == 0) {
    return;
  }
  const Blocks blocks(out, kLimits, context.pool.num_threads());
  const Element type = element_of(out.dtype());
  const auto compute = [&](std::int64_t task, int thread) {
    const Block block = blocks.at(task);
    const std::array<Columns, 2> columns = {
        {{gate, block.col, block.cols}, {up, block.col, block.cols}}};
    BlockSums sums(context.kernels, context.scratch(thread, BlockSums::scratch_floats()));
    sums.compute(a, block.rows, columns, phase);
    float* left = sums.spare();
    float* right = left + kLimits.cols;
    for (std::int64_t r = 0; r < block.rows.count; ++r) {
      const float* row = sums.row(r);
      context.kernels.narrow(row, block.cols, type, left);
      context.kernels.narrow(row + BlockSums::padded(block.cols), block.cols, type, right);
      context.kernels.swiglu(left, right, type, block.cols,
                             address(out, block.rows.first + r, block.col));
    }
  };
  for_blocks(context.pool, blocks.num(), 2 * out.rows() * out.cols() * a.cols(), compute);
}

}  // namespace tidekv::cpu
