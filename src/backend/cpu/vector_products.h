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
  static Vector add_lane(Vector sum, const float* factor, Vector b) {
    return multiply_add_lane(factor, b, sum);
  }
};

// kRows rows side by side with kFactors rows of factors, each by the same operations as alone.
template <Element kType, int kRows, int kFactors>
inline void dot_rows(const char* row, std::int64_t stride_bytes, std::int64_t n, const FloatRows& a,
                     Totals<kFactors>& totals, int at) {
  Vector sums[kRows][kFactors][kSums];
  TIDEKV_UNROLL
  for (int i = 0; i < kRows * kFactors * kSums; ++i) {
    sums[i / kSums / kFactors][i / kSums % kFactors][i % kSums] = zeros();
  }
  const auto add_vectors = [&](std::int64_t i, LaneMask mask, int j) {
    TIDEKV_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Vector elements = load<kType>(row + r * stride_bytes, i, mask);
      TIDEKV_UNROLL
      for (int v = 0; v < kFactors; ++v) {
        const Vector factors = load<Element::kF32>(a.row(v), i, mask);
        sums[r][v][j] = multiply_add(elements, factors, sums[r][v][j]);
      }
    }
  };
  std::int64_t i = 0;
  for (; i + kSums * kLanes <= n; i += kSums * kLanes) {
    TIDEKV_UNROLL
    for (int r = 0; r < kRows; ++r) {
      prefetch<kSums * kLanes * kElementBytes<kType>>(row + r * stride_bytes +
                                                      i * kElementBytes<kType>);
    }
    TIDEKV_UNROLL
    for (int j = 0; j < kSums; ++j) {
      add_vectors(i + j * kLanes, kAllLanes, j);
    }
  }
  TIDEKV_UNROLL
  for (int j = 0; j < kSums; ++j) {
    if (i < n) {
      add_vectors(i, first_lanes(n - i), j);
      i += kLanes;
    }
  }
  TIDEKV_UNROLL
  for (int v = 0; v < kFactors; ++v) {
    TIDEKV_UNROLL
    for (int r = 0; r < kRows; ++r) {
      totals[v][at + r] = add_up(sums[r][v]);
    }
  }
}

void dots(const ElementRows& rows, std::int64_t n, const FloatRows& a, Start start,
          const FloatRows& sums) {
  with_element(rows.type, [&]<Element kType>(Constant<kType>) {
    const std::int64_t stride_bytes = rows.stride * kElementBytes<kType>;
    const auto* first = static_cast<const char*>(rows.data);
    for_factors(a.rows, [&]<int kFactors>(Count<kFactors>, std::int64_t v) {
      const FloatRows factors = from_row(a, v);
      sum_rows<kFactors>(
          rows.rows, start, from_row(sums, v),
          [&]<int kRows>(Count<kRows>, std::int64_t r, Totals<kFactors>& totals, int at) {
            dot_rows<kType, kRows, kFactors>(first + r * stride_bytes, stride_bytes, n, factors,
                                             totals, at);
          });
    });
  });
}

// Vectors of columns that are summed together for kFactors rows of factors.
template <int kFactors>
constexpr int kColumnVectors = kFactors * 2 <= kRowsTogether ? 4 : 2;

// The first `cols` columns of the sums, at most kColumnVectors vectors, from `first` on. Even and
// odd rows are summed apart: a sum of one chain would wait for itself.
template <Element kType, int kFactors>
inline void add_columns(const ElementRows& rows, std::int64_t first, std::int64_t cols,
                        const FloatRows& factors, const FloatRows& sums) {
  constexpr int kVectors = kColumnVectors<kFactors>;
  LaneMask masks[kVectors];
  Vector parts[2][kFactors][kVectors];  // of even rows, of odd ones
  TIDEKV_UNROLL
  for (int j = 0; j < kVectors; ++j) {
    masks[j] = first_lanes(cols - j * kLanes);
    TIDEKV_UNROLL
    for (int v = 0; v < kFactors; ++v) {
      parts[0][v][j] = load<Element::kF32>(sums.row(v) + first, j * kLanes, masks[j]);
      parts[1][v][j] = zeros();
    }
  }
  const std::int64_t stride_bytes = rows.stride * kElementBytes<kType>;
  const auto* row = static_cast<const char*>(rows.data) + first * kElementBytes<kType>;
  const auto add_row = [&](std::int64_t r, int part) {
    prefetch<kVectors * kLanes * kElementBytes<kType>>(row);
    TIDEKV_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      const Vector elements = load<kType>(row, j * kLanes, masks[j]);
      TIDEKV_UNROLL
      for (int v = 0; v < kFactors; ++v) {
        parts[part][v][j] = multiply_add(elements, all_lanes(factors.row(v)[r]), parts[part][v][j]);
      }
    }
    row += stride_bytes;
  };
  std::int64_t r = 0;
  for (; r + 2 <= rows.rows; r += 2) {
    add_row(r, 0);
    add_row(r + 1, 1);
  }
  if (r < rows.rows) {
    add_row(r, 0);
  }
  TIDEKV_UNROLL
  for (int v = 0; v < kFactors; ++v) {
    TIDEKV_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      store<Element::kF32>(add(parts[0][v][j], parts[1][v][j]), sums.row(v) + first, j * kLanes,
                           masks[j]);
    }
  }
}

void add_rows(const ElementRows& rows, std::int64_t n, const FloatRows& factors,
              const FloatRows& sums) {
  with_element(rows.type, [&]<Element kType>(Constant<kType>) {
    for_factors(factors.rows, [&]<int kFactors>(Count<kFactors>, std::int64_t v) {
      constexpr std::int64_t kCols = std::int64_t{kColumnVectors<kFactors>} * kLanes;
      const FloatRows some = from_row(factors, v);
      const FloatRows to = from_row(sums, v);
      std::int64_t i = 0;
      for (; i + kCols <= n; i += kCols) {  // the masks known, no tests inside
        add_columns<kType, kFactors>(rows, i, kCols, some, to);
      }
      if (i < n) {
        add_columns<kType, kFactors>(rows, i, n - i, some, to);
      }
    });
  });
}

}  // namespace
}  // namespace tidekv::cpu

#endif
