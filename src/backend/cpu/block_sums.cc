#include "backend/cpu/block_sums.h"

#include "backend/cpu/operations.h"

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kSumDepth = 128;  // of one chain
constexpr std::int64_t kMaxRows = kTallBlock.rows;
constexpr std::int64_t kMaxSums = kTallBlock.rows * kTallBlock.cols;
static_assert(kWideBlock.rows <= kMaxRows && kWideBlock.rows * kWideBlock.cols <= kMaxSums);
static_assert(kTallBlock.rows % kStripRows == 0 && kTallBlock.cols % kPanelCols == 0);
static_assert(kWideBlock.rows % kStripRows == 0 && kWideBlock.cols % kPanelCols == 0);
static_assert(kSumDepth <= kPanelDepth && kDotDepth <= kMaxRows * kRowStride);

Element element_in_panel(DType weights) {
  return is_quantised(weights) ? Element::kF32 : element_of(weights);
}

}  // namespace

std::int64_t BlockSums::scratch_floats() {
  return kMaxRows * kRowStride + kSumDepth * kPanelCols + kPanelCols * kSumDepth + kMaxSums;
}

BlockSums::BlockSums(const Kernels& kernels, float* scratch)
    : kernels_(kernels),
      a_(scratch),
      panel_(a_ + kMaxRows * kRowStride),
      wide_(panel_ + kSumDepth * kPanelCols),
      sums_(wide_ + kPanelCols * kSumDepth) {}

void BlockSums::compute(DeviceView a, const Range& rows, std::span<const Columns> parts,
                        Phase phase) {
  stride_ = 0;
  for (const Columns& part : parts) {
    stride_ += padded(part.range.count);
  }
  TIDEKV_DCHECK(rows.count <= kMaxRows && rows.count * stride_ <= kMaxSums);
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
