// out (+)= a w^T + bias, and two such products with what joins them. A task is a block of rows
// times a block of columns (block_sums.h).
#include <array>

#include "backend/cpu/block_sums.h"
#include "backend/cpu/operations.h"

namespace tidekv::cpu {
namespace {

BlockGrid cut(DeviceView out, std::int64_t parts, int num_threads) {
  const BlockShape shape = block_shape(out.rows(), out.cols(), parts, num_threads);
  return {out.rows(), Pieces(out.rows(), shape.rows, kStripRows), out.cols(),
          Pieces(out.cols(), shape.cols, kPanelCols)};
}

}  // namespace

std::int64_t matmul_scratch_floats() { return BlockSums::scratch_floats(); }

void matmul(const Context& context, DeviceView a, DeviceView w, DeviceView out,
            const MatmulOptions& options) {
  if (out.rows() == 0 || out.cols() == 0) {
    return;
  }
  const BlockGrid blocks = cut(out, 1, context.pool.num_threads());
  const auto narrow =
      options.mode == MatmulMode::kAccumulate ? context.kernels.narrow_add : context.kernels.narrow;
  const auto compute = [&](std::int64_t task, int thread) {
    const Range rows = blocks.rows_of(task);
    const Columns columns{{w, options.bias}, blocks.cols_of(task)};
    BlockSums sums(context.kernels, context.scratch(thread, BlockSums::scratch_floats()));
    sums.compute(a, rows, {&columns, 1}, options.phase);
    for (std::int64_t r = 0; r < rows.count; ++r) {
      narrow(sums.row(r), columns.range.count, element_of(out.dtype()),
             address(out, rows.first + r, columns.range.first));
    }
  };
  for_blocks(context.pool, blocks.num(), out.rows() * out.cols() * a.cols(), compute);
}

void gated_matmul(const Context& context, DeviceView a, const Linear<DeviceView>& gate,
                  const Linear<DeviceView>& up, DeviceView out, Phase phase) {
  if (out.rows() == 0 || out.cols() == 0) {
    return;
  }
  const BlockGrid blocks = cut(out, 2, context.pool.num_threads());
  const Element type = element_of(out.dtype());
  const auto compute = [&](std::int64_t task, int thread) {
    const Range rows = blocks.rows_of(task);
    const Range cols = blocks.cols_of(task);
    const std::array<Columns, 2> columns = {{{gate, cols}, {up, cols}}};
    BlockSums sums(context.kernels, context.scratch(thread, BlockSums::scratch_floats()));
    sums.compute(a, rows, columns, phase);
    float* left = sums.spare();
    float* right = left + kBlockCols;
    for (std::int64_t r = 0; r < rows.count; ++r) {
      context.kernels.narrow(sums.row(r), cols.count, type, left);
      context.kernels.narrow(sums.row(r) + BlockSums::padded(cols.count), cols.count, type, right);
      context.kernels.swiglu(left, right, type, cols.count,
                             address(out, rows.first + r, cols.first));
    }
  };
  for_blocks(context.pool, blocks.num(), 2 * out.rows() * out.cols() * a.cols(), compute);
}

}  // namespace tidekv::cpu
