#include "backend/cpu/block_sums.h"

#include <limits>

#include "backend/cpu/operations.h"

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kSumDepth = 128;  // of one chain
static_assert(kBlockRows % kStripRows == 0 && kBlockSums / kBlockRows >= kPanelDepth);
static_assert(kSumDepth <= kPanelDepth && kDotDepth <= kBlockRows * kRowStride);

// What a product cut so takes, in multiply-adds of one thread. Widening a row takes as long as
// multiplying it by 20 columns, packing a column as long as multiplying it by 13 rows; and one
// thread may begin late, or be slowed down, which costs a part of a task.
std::int64_t cost_of(const BlockShape& block, std::int64_t num_blocks, int num_threads) {
  const std::int64_t one = block.rows * block.cols + 20 * block.rows + 13 * block.cols;
  return ceil_div(num_blocks, num_threads) * one + (num_threads > 1 ? one / 4 : 0);
}

Element element_in_panel(DType weights) {
  return is_quantised(weights) ? Element::kF32 : element_of(weights);
}

}  // namespace

BlockShape block_shape(std::int64_t rows, std::int64_t cols, std::int64_t parts, int num_threads) {
  const std::int64_t enough_blocks = std::int64_t{4} * num_threads;
  BlockShape best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t num_rows = ceil_div(rows, kBlockRows);  // of blocks
  do {
    const Pieces row_cut(rows, ceil_div(rows, num_rows), kStripRows);
    const std::int64_t most =
        std::min(kBlockCols, kBlockSums / row_cut.len) / parts / kPanelCols * kPanelCols;
    const std::int64_t fewest = ceil_div(cols, most);
    const std::int64_t last =
        std::max(fewest + std::int64_t{2} * num_threads, enough_blocks / num_rows);
    for (std::int64_t num_cols = fewest; num_cols <= last; ++num_cols) {
      const Pieces col_cut(cols, ceil_div(cols, num_cols), kPanelCols);
      const BlockShape block{std::min(rows, row_cut.len), parts * col_cut.len};
      const std::int64_t cost = cost_of(block, row_cut.num * col_cut.num, num_threads);
      if (cost < least) {
        least = cost;
        best = {row_cut.len, col_cut.len};
      }
    }
    num_rows *= 2;
  } while (num_rows <= enough_blocks);
  return best;
}

std::int64_t BlockSums::scratch_floats() {
  return kBlockRows * kRowStride + kSumDepth * kPanelCols + kPanelCols * kSumDepth + kBlockSums;
}

BlockSums::BlockSums(const Kernels& kernels, float* scratch)
    : kernels_(kernels),
      a_(scratch),
      panel_(a_ + kBlockRows * kRowStride),
      wide_(panel_ + kSumDepth * kPanelCols),
      sums_(wide_ + kPanelCols * kSumDepth) {}

void BlockSums::compute(DeviceView a, const Range& rows, std::span<const Columns> parts,
                        Phase phase) {
  stride_ = 0;
  for (const Columns& part : parts) {
    stride_ += padded(part.range.count);
  }
  TIDEKV_DCHECK(rows.count <= kBlockRows && rows.count * stride_ <= kBlockSums);
  const bool as_stored = phase == Phase::kDecode;
  std::int64_t k = 0;
  do {  // once even for depth 0: the empty sum is 0
    if (as_stored) {
      add_as_stored(a, rows, parts, k);
    } else {
      add_packed(a, rows, parts, k);
    }
    k += as_stored ? kDotDepth : kSumDepth;
  } while (k < a.cols());
  add_biases(rows.count, parts);
}

// Columns [col, col + 32) of the part, or as many as are left, into the panel; depth [k, k +
// depth).
void BlockSums::pack_weights(const Products& products, const Columns& part, std::int64_t col,
                             std::int64_t k, std::int64_t depth) const {
  const DeviceView& w = part.linear.weight;
  const std::int64_t row = part.range.first + col;
  const std::int64_t count = std::min(kPanelCols, part.range.count - col);
  if (!is_quantised(w.dtype())) {
    products.pack_columns(address(w, row, k), element_of(w.dtype()), w.cols(), count, depth,
                          panel_);
    return;
  }
  for (std::int64_t r = 0; r < count; ++r) {
    kernels_.expand(address(w, row + r), block_type_of(w.dtype()), k, depth, wide_ + r * kSumDepth);
  }
  kernels_.pack_columns(wide_, Element::kF32, kSumDepth, count, depth, panel_);
}

void BlockSums::add_packed(DeviceView a, const Range& rows, std::span<const Columns> parts,
                           std::int64_t k) const {
  const std::int64_t depth = std::min(kSumDepth, a.cols() - k);
  const Start start = k == 0 ? Start::kZero : Start::kAdd;
  // Strips of equal height: a low one at the end would not keep the multipliers busy.
  const std::int64_t strip_rows = ceil_div(rows.count, ceil_div(rows.count, kStripRows));
  decltype(Products::load_row) loaded = nullptr;
  float* sums = sums_;
  for (const Columns& part : parts) {
    const Products products =
        products_of(kernels_, element_of(a.dtype()), element_in_panel(part.linear.weight.dtype()));
    if (products.load_row != loaded) {  // once for all parts that multiply alike
      loaded = products.load_row;
      for (std::int64_t r = 0; r < rows.count; ++r) {
        loaded(address(a, rows.first + r, k), element_of(a.dtype()), depth, a_ + r * kRowStride);
      }
    }
    for (std::int64_t c = 0; c < part.range.count; c += kPanelCols) {
      pack_weights(products, part, c, k, depth);
      for (std::int64_t r = 0; r < rows.count; r += strip_rows) {
        products.multiply(a_ + r * kRowStride, panel_, std::min(strip_rows, rows.count - r),
                          products.num_units(depth), start, sums + r * stride_ + c, stride_);
      }
    }
    sums += padded(part.range.count);
  }
}

// The same sums straight from the rows of the weights, one row of `a` after the other.
void BlockSums::add_as_stored(DeviceView a, const Range& rows, std::span<const Columns> parts,
                              std::int64_t k) const {
  const std::int64_t depth = std::min(kDotDepth, a.cols() - k);
  const Start start = k == 0 ? Start::kZero : Start::kAdd;
  for (std::int64_t r = 0; r < rows.count; ++r) {
    float* sums = sums_ + r * stride_;
    kernels_.widen(address(a, rows.first + r, k), element_of(a.dtype()), depth, a_);
    for (const Columns& part : parts) {
      const DeviceView& w = part.linear.weight;
      if (is_quantised(w.dtype())) {
        const BlockRows stored{address(w, part.range.first, k), block_type_of(w.dtype()),
                               row_bytes(w.dtype(), w.cols()), part.range.count};
        kernels_.block_dots(stored, depth, a_, start, sums);
      } else {
        const ElementRows stored{address(w, part.range.first, k), element_of(w.dtype()), w.cols(),
                                 part.range.count};
        kernels_.dots(stored, depth, {a_, 0, 1}, start, {sums, 0, 1});
      }
      sums += padded(part.range.count);
    }
  }
}

void BlockSums::add_biases(std::int64_t num_rows, std::span<const Columns> parts) const {
  float* sums = sums_;
  for (const Columns& part : parts) {
    const DeviceView& bias = part.linear.bias;
    if (bias.rows() > 0) {
      kernels_.widen(address(bias, 0, part.range.first), element_of(bias.dtype()), part.range.count,
                     spare());
      for (std::int64_t r = 0; r < num_rows; ++r) {
        kernels_.narrow_add(spare(), part.range.count, Element::kF32, sums + r * stride_);
      }
    }
    sums += padded(part.range.count);
  }
}

}  // namespace tidekv::cpu
