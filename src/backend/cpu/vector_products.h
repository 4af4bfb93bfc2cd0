// Packing, and products with rows as they are stored, in vectors (Kernels in kernels.h says what
// each does). vector_tile.h has the product of a strip and a panel.
#pragma once

#ifdef __AVX2__

#include "backend/cpu/kernels.h"
#include "backend/cpu/vector_tile.h"
#include "backend/cpu/vectors.h"

namespace tidekv::cpu {
namespace {

// One block of rows into as many lanes of a panel, a vector of columns at a time; of BF16, whose
// pairs move as one 32-bit number, two.
template <Element kType>
struct ColumnBlock {
  static constexpr std::int64_t kCols = kType == Element::kBF16 ? 2 * kLanes : kLanes;

  // Columns [0, cols) of rows [0, rows); the other rows read as 0.
  static void read(const char* from, std::int64_t stride_bytes, std::int64_t rows,
                   std::int64_t cols, Vector (&x)[kLanes]) {
    TIDEKV_UNROLL
    for (int r = 0; r < kLanes; ++r) {
      if (r >= rows) {
        x[r] = zeros();
      } else if constexpr (kType == Element::kBF16) {
        x[r] = load_pairs(from + r * stride_bytes, cols);
      } else {
        x[r] = load<kType>(from + r * stride_bytes, 0, first_lanes(cols));
      }
    }
  }

  static void write(const Vector (&x)[kLanes], std::int64_t cols, float* lanes) {
    TIDEKV_UNROLL
    for (std::int64_t c = 0; c < kLanes; ++c) {
      if constexpr (kType == Element::kBF16) {
        if (2 * c < cols) {
          store<Element::kF32>(first_of_pairs(x[c]), lanes, std::int64_t{2} * c * kPanelCols);
        }
        if (2 * c + 1 < cols) {
          store<Element::kF32>(second_of_pairs(x[c]), lanes,
                               (std::int64_t{2} * c + 1) * kPanelCols);
        }
      } else if (c < cols) {
        store<Element::kF32>(x[c], lanes, c * kPanelCols);
      }
    }
  }
};

void pack_columns(const void* from, Element type, std::int64_t stride, std::int64_t rows,
                  std::int64_t depth, float* panel) {
  with_element(type, [&]<Element kType>(Constant<kType>) {
    using Block = ColumnBlock<kType>;
    const std::int64_t stride_bytes = stride * kElementBytes<kType>;
    for (std::int64_t row = 0; row < kPanelCols; row += kLanes) {
      const char* at = static_cast<const char*>(from) + row * stride_bytes;
      for (std::int64_t c = 0; c < depth; c += Block::kCols) {
        const char* block = at + c * kElementBytes<kType>;
        float* lanes = panel + c * kPanelCols + row;
        Vector x[kLanes];
        if (row + kLanes <= rows && c + Block::kCols <= depth) {  // bounds known, no tests inside
          Block::read(block, stride_bytes, kLanes, Block::kCols, x);
          transpose(x);
          Block::write(x, Block::kCols, lanes);
        } else {
          Block::read(block, stride_bytes, rows - row, depth - c, x);
          transpose(x);
          Block::write(x, depth - c, lanes);
        }
      }
    }
  });
}

void pack_rows(const void* from, Element type, std::int64_t stride, std::int64_t depth,
               std::int64_t cols, float* panel) {
  with_element(type, [&]<Element kType>(Constant<kType>) {
    const char* row = static_cast<const char*>(from);
    for (std::int64_t r = 0; r < depth; ++r) {
      TIDEKV_UNROLL
      for (std::int64_t c = 0; c < kPanelCols; c += kLanes) {
        // Where nothing is left, no address past the row is formed.
        const Vector x = c < cols ? load<kType>(row, c, first_lanes(cols - c)) : zeros();
        store<Element::kF32>(x, panel, r * kPanelCols + c);
      }
      row += stride * kElementBytes<kType>;
    }
  });
}

struct FusedMultiplyAdd {
  static Vector add(Vector sum, Vector factor, Vector b) { return multiply_add(factor, b, sum); }
};

// kRows rows side by side, each by the same operations as alone.
template <Element kType, int kRows>
inline void dot_rows(const char* row, std::int64_t stride_bytes, std::int64_t n, const float* a,
                     Vector* totals) {
  Vector sums[kRows][kSums];
  TIDEKV_UNROLL
  for (int r = 0; r < kRows; ++r) {
    sums[r][0] = sums[r][1] = sums[r][2] = sums[r][3] = zeros();
  }
  std::int64_t i = 0;
  for (; i + kSums * kLanes <= n; i += kSums * kLanes) {
    TIDEKV_UNROLL
    for (int j = 0; j < kSums; ++j) {
      const Vector factors = load<Element::kF32>(a, i + j * kLanes);
      TIDEKV_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const Vector elements = load<kType>(row + r * stride_bytes, i + j * kLanes);
        sums[r][j] = multiply_add(elements, factors, sums[r][j]);
      }
    }
  }
  TIDEKV_UNROLL
  for (int j = 0; j < kSums; ++j) {
    if (i < n) {
      const LaneMask mask = first_lanes(n - i);
      const Vector factors = load<Element::kF32>(a, i, mask);
      TIDEKV_UNROLL
      for (int r = 0; r < kRows; ++r) {
        sums[r][j] =
            multiply_add(load<kType>(row + r * stride_bytes, i, mask), factors, sums[r][j]);
      }
      i += kLanes;
    }
  }
  TIDEKV_UNROLL
  for (int r = 0; r < kRows; ++r) {
    totals[r] = add_up(sums[r]);
  }
}

void dots(const ElementRows& rows, std::int64_t n, const float* a, Start start, float* sums) {
  with_element(rows.type, [&]<Element kType>(Constant<kType>) {
    const std::int64_t stride_bytes = rows.stride * kElementBytes<kType>;
    const auto* first = static_cast<const char*>(rows.data);
    sum_rows(rows.rows, start, sums, [&]<int kRows>(Count<kRows>, std::int64_t r, Vector* totals) {
      dot_rows<kType, kRows>(first + r * stride_bytes, stride_bytes, n, a, totals);
    });
  });
}

constexpr int kColumnVectors = 4;

// The first `cols` columns of the sum, at most kColumnVectors vectors, from `first` on. Even and
// odd rows are summed apart: a sum of one chain would wait for itself.
template <Element kType>
inline void add_columns(const ElementRows& rows, std::int64_t first, std::int64_t cols,
                        const float* factors, float* sum) {
  LaneMask masks[kColumnVectors];
  Vector even[kColumnVectors];
  Vector odd[kColumnVectors];
  TIDEKV_UNROLL
  for (int j = 0; j < kColumnVectors; ++j) {
    masks[j] = first_lanes(cols - j * kLanes);
    even[j] = load<Element::kF32>(sum, j * kLanes, masks[j]);
    odd[j] = zeros();
  }
  const std::int64_t stride_bytes = rows.stride * kElementBytes<kType>;
  const auto* row = static_cast<const char*>(rows.data) + first * kElementBytes<kType>;
  std::int64_t r = 0;
  for (; r + 2 <= rows.rows; r += 2) {
    TIDEKV_UNROLL
    for (int j = 0; j < kColumnVectors; ++j) {
      even[j] =
          multiply_add(load<kType>(row, j * kLanes, masks[j]), all_lanes(factors[r]), even[j]);
      odd[j] = multiply_add(load<kType>(row + stride_bytes, j * kLanes, masks[j]),
                            all_lanes(factors[r + 1]), odd[j]);
    }
    row += 2 * stride_bytes;
  }
  TIDEKV_UNROLL
  for (int j = 0; j < kColumnVectors; ++j) {
    if (r < rows.rows) {
      even[j] =
          multiply_add(load<kType>(row, j * kLanes, masks[j]), all_lanes(factors[r]), even[j]);
    }
    store<Element::kF32>(add(even[j], odd[j]), sum, j * kLanes, masks[j]);
  }
}

void add_rows(const ElementRows& rows, std::int64_t n, const float* factors, float* sum) {
  constexpr std::int64_t kCols = kColumnVectors * kLanes;
  with_element(rows.type, [&]<Element kType>(Constant<kType>) {
    std::int64_t i = 0;
    for (; i + kCols <= n; i += kCols) {  // the masks known, no tests inside
      add_columns<kType>(rows, i, kCols, factors, sum + i);
    }
    if (i < n) {
      add_columns<kType>(rows, i, n - i, factors, sum + i);
    }
  });
}

}  // namespace
}  // namespace tidekv::cpu

#endif
