// The register tile of the products, for any instruction that multiplies and adds.
#pragma once

#ifdef __AVX2__

#include <utility>

#include "backend/cpu/kernels.h"
#include "backend/cpu/vectors.h"

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kTileCols = 2 * kLanes;
static_assert(kPanelCols % kTileCols == 0);

// Rows whose factor both multiply-adds read from memory; it is loaded once for the others. Each way
// alone fills up one part of the processor: a load apart is one more instruction to issue, of
// which a busy neighbour on the same core leaves too few, and a load for each multiply-add takes
// all that the cache can answer.
constexpr bool reads_factor(int row) { return row % 3 != 0; }

// A tile of kRows x kTileCols accumulators stays in registers beside two vectors of the panel and
// one broadcast. MultiplyAdd::add(sum, factor, b) takes a vector of the panel into as many sums;
// add_lane(sum, a, b) reads the factor at a.
template <typename MultiplyAdd, int kRows>
void multiply_tile(const float* a, const float* panel, std::int64_t depth, Start start, float* c,
                   std::int64_t c_stride) {
  Vector left[kRows];
  Vector right[kRows];
  TIDEKV_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const bool goes_on = start == Start::kContinue;
    left[r] = goes_on ? load<Element::kF32>(c, r * c_stride) : zeros();
    right[r] = goes_on ? load<Element::kF32>(c, r * c_stride + kLanes) : zeros();
  }
  for (std::int64_t k = 0; k < depth; ++k) {
    const Vector b0 = load<Element::kF32>(panel, k * kPanelCols);
    const Vector b1 = load<Element::kF32>(panel, k * kPanelCols + kLanes);
    TIDEKV_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const float* at = a + r * kRowStride + k;
      if (reads_factor(r)) {
        left[r] = MultiplyAdd::add_lane(left[r], at, b0);
        right[r] = MultiplyAdd::add_lane(right[r], at, b1);
      } else {
        const Vector factor = all_lanes(*at);
        left[r] = MultiplyAdd::add(left[r], factor, b0);
        right[r] = MultiplyAdd::add(right[r], factor, b1);
      }
    }
  }
  TIDEKV_UNROLL
  for (int r = 0; r < kRows; ++r) {
    if (start == Start::kAdd) {
      left[r] = add(left[r], load<Element::kF32>(c, r * c_stride));
      right[r] = add(right[r], load<Element::kF32>(c, r * c_stride + kLanes));
    }
    store<Element::kF32>(left[r], c, r * c_stride);
    store<Element::kF32>(right[r], c, r * c_stride + kLanes);
  }
}

// Tiles of about equal height: a low one waits for its own sums.
template <typename MultiplyAdd, int... kIndex>
void multiply_strip_of(std::integer_sequence<int, kIndex...> /*rows*/, const float* a,
                       const float* panel, std::int64_t rows, std::int64_t depth, Start start,
                       float* c, std::int64_t c_stride) {
  using MultiplyTile =
      void (*)(const float*, const float*, std::int64_t, Start, float*, std::int64_t);
  static constexpr MultiplyTile kMultiplyTile[] = {multiply_tile<MultiplyAdd, kIndex + 1>...};
  const std::int64_t num_tiles = (rows + kTileRows - 1) / kTileRows;
  for (std::int64_t tile = 0; tile < num_tiles; ++tile) {
    const std::int64_t row = rows * tile / num_tiles;
    const std::int64_t height = rows * (tile + 1) / num_tiles - row;
    for (std::int64_t col = 0; col < kPanelCols; col += kTileCols) {
      kMultiplyTile[height - 1](a + row * kRowStride, panel + col, depth, start,
                                c + row * c_stride + col, c_stride);
    }
  }
}

// Kernels::multiply.
template <typename MultiplyAdd>
void multiply_strip(const float* a, const float* panel, std::int64_t rows, std::int64_t depth,
                    Start start, float* c, std::int64_t c_stride) {
  multiply_strip_of<MultiplyAdd>(std::make_integer_sequence<int, kTileRows>{}, a, panel, rows,
                                 depth, start, c, c_stride);
}

}  // namespace
}  // namespace tidekv::cpu

#endif
