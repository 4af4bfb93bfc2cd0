// Packing and the register tile of the products, in AVX-512.
#include "backend/cpu/avx512_products.h"

#include "backend/cpu/avx512_tile.h"
#include "backend/cpu/avx512_vectors.h"

namespace tidekv::cpu::avx512 {
namespace {

// One block of up to 16 rows into 16 lanes of a panel, 16 columns at a time; of BF16, whose pairs
// move as one 32-bit number, 32 columns.
template <Element kType>
struct ColumnBlock {
  static constexpr std::int64_t kCols = kType == Element::kBF16 ? 32 : 16;

  // Columns [0, cols) of rows [0, rows); the other rows read as 0.
  static void load(const char* from, std::int64_t stride_bytes, std::int64_t rows,
                   std::int64_t cols, __m512 (&x)[kLanes]) {
    const __mmask32 pair_mask = first_halves(cols);
    TIDEKV_UNROLL
    for (int r = 0; r < kLanes; ++r) {
      if (r >= rows) {
        x[r] = _mm512_setzero_ps();
      } else if constexpr (kType == Element::kBF16) {
        x[r] = _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(pair_mask, from + r * stride_bytes));
      } else {
        x[r] = cpu::load<kType>(from + r * stride_bytes, 0, first_lanes(cols));
      }
    }
  }

  static void store(const __m512 (&x)[kLanes], std::int64_t cols, float* lanes) {
    TIDEKV_UNROLL
    for (std::int64_t c = 0; c < kLanes; ++c) {
      if constexpr (kType == Element::kBF16) {
        const __m512i pair = _mm512_castps_si512(x[c]);
        if (2 * c < cols) {
          _mm512_storeu_si512(lanes + std::int64_t{2} * c * kPanelCols,
                              _mm512_slli_epi32(pair, 16));
        }
        if (2 * c + 1 < cols) {
          _mm512_storeu_si512(lanes + (std::int64_t{2} * c + 1) * kPanelCols,
                              _mm512_and_si512(pair, _mm512_set1_epi32(-0x10000)));
        }
      } else if (c < cols) {
        _mm512_storeu_ps(lanes + c * kPanelCols, x[c]);
      }
    }
  }
};

template <Element kType>
void pack_columns_of(const void* from, std::int64_t stride, std::int64_t rows, std::int64_t depth,
                     float* panel) {
  using Block = ColumnBlock<kType>;
  const std::int64_t stride_bytes = stride * kElementBytes<kType>;
  for (std::int64_t row = 0; row < kPanelCols; row += kLanes) {
    const char* at = static_cast<const char*>(from) + row * stride_bytes;
    for (std::int64_t c = 0; c < depth; c += Block::kCols) {
      float* lanes = panel + c * kPanelCols + row;
      __m512 x[kLanes];
      if (row + kLanes <= rows && c + Block::kCols <= depth) {  // the bounds known, no tests inside
        Block::load(at + c * kElementBytes<kType>, stride_bytes, kLanes, Block::kCols, x);
        transpose(x);
        Block::store(x, Block::kCols, lanes);
      } else {
        Block::load(at + c * kElementBytes<kType>, stride_bytes, rows - row, depth - c, x);
        transpose(x);
        Block::store(x, depth - c, lanes);
      }
    }
  }
}

template <Element kType>
void pack_rows_of(const void* from, std::int64_t stride, std::int64_t depth, std::int64_t cols,
                  float* panel) {
  const __mmask16 left = first_lanes(cols);
  const __mmask16 right = first_lanes(cols <= kLanes ? 0 : cols - kLanes);
  const char* row = static_cast<const char*>(from);
  for (std::int64_t r = 0; r < depth; ++r) {
    _mm512_storeu_ps(panel + r * kPanelCols, load<kType>(row, 0, left));
    _mm512_storeu_ps(panel + r * kPanelCols + kLanes, load<kType>(row, kLanes, right));
    row += stride * kElementBytes<kType>;
  }
}

struct FusedMultiplyAdd {
  static __m512 add(__m512 sum, __m512 factor, __m512 b) { return _mm512_fmadd_ps(factor, b, sum); }
};

// kRows rows side by side, each by the same operations as alone.
template <Element kType, int kRows>
__m128 dot_rows(const char* row, std::int64_t stride_bytes, std::int64_t n, const float* a) {
  __m512 sums[kRows][kSums];
  TIDEKV_UNROLL
  for (int r = 0; r < kRows; ++r) {
    sums[r][0] = sums[r][1] = sums[r][2] = sums[r][3] = _mm512_setzero_ps();
  }
  std::int64_t i = 0;
  for (; i + kSums * kLanes <= n; i += kSums * kLanes) {
    TIDEKV_UNROLL
    for (int j = 0; j < kSums; ++j) {
      const __m512 factors = _mm512_loadu_ps(a + i + j * kLanes);
      TIDEKV_UNROLL
      for (int r = 0; r < kRows; ++r) {
        sums[r][j] = _mm512_fmadd_ps(load<kType>(row + r * stride_bytes, i + j * kLanes), factors,
                                     sums[r][j]);
      }
    }
  }
  for (int j = 0; i < n; i += kLanes, ++j) {
    const __mmask16 mask = first_lanes(n - i);
    const __m512 factors = _mm512_maskz_loadu_ps(mask, a + i);
    TIDEKV_UNROLL
    for (int r = 0; r < kRows; ++r) {
      sums[r][j] =
          _mm512_fmadd_ps(load<kType>(row + r * stride_bytes, i, mask), factors, sums[r][j]);
    }
  }
  return sums_of_rows<kRows>(sums);
}

template <Element kType>
void dots_of(const ElementRows& rows, std::int64_t n, const float* a, Start start, float* sums) {
  const std::int64_t stride_bytes = rows.stride * kElementBytes<kType>;
  const auto* row = static_cast<const char*>(rows.data);
  std::int64_t r = 0;
  for (; r + kRowsAtOnce <= rows.rows; r += kRowsAtOnce) {
    store_sums(dot_rows<kType, kRowsAtOnce>(row + r * stride_bytes, stride_bytes, n, a),
               kRowsAtOnce, start, sums + r);
  }
  for (; r < rows.rows; ++r) {
    store_sums(dot_rows<kType, 1>(row + r * stride_bytes, stride_bytes, n, a), 1, start, sums + r);
  }
}

// Columns [i, i + 16 kVectors) of the sum. Even and odd rows are summed apart: a sum of one chain
// would wait for itself.
template <Element kType, int kVectors>
void add_columns(const ElementRows& rows, std::int64_t i, std::int64_t cols, const float* factors,
                 float* sum) {
  __mmask16 masks[kVectors];
  __m512 even[kVectors];
  __m512 odd[kVectors];
  TIDEKV_UNROLL
  for (int j = 0; j < kVectors; ++j) {
    masks[j] = first_lanes(cols - j * kLanes);
    even[j] = _mm512_maskz_loadu_ps(masks[j], sum + i + j * kLanes);
    odd[j] = _mm512_setzero_ps();
  }
  const std::int64_t stride_bytes = rows.stride * kElementBytes<kType>;
  const auto* row = static_cast<const char*>(rows.data);
  std::int64_t r = 0;
  for (; r + 2 <= rows.rows; r += 2) {
    TIDEKV_UNROLL
    for (int j = 0; j < kVectors; ++j) {
      even[j] = _mm512_fmadd_ps(load<kType>(row, i + j * kLanes, masks[j]),
                                _mm512_set1_ps(factors[r]), even[j]);
      odd[j] = _mm512_fmadd_ps(load<kType>(row + stride_bytes, i + j * kLanes, masks[j]),
                               _mm512_set1_ps(factors[r + 1]), odd[j]);
    }
    row += 2 * stride_bytes;
  }
  TIDEKV_UNROLL
  for (int j = 0; j < kVectors; ++j) {
    if (r < rows.rows) {
      even[j] = _mm512_fmadd_ps(load<kType>(row, i + j * kLanes, masks[j]),
                                _mm512_set1_ps(factors[r]), even[j]);
    }
    _mm512_mask_storeu_ps(sum + i + j * kLanes, masks[j], _mm512_add_ps(even[j], odd[j]));
  }
}

template <Element kType>
void add_rows_of(const ElementRows& rows, std::int64_t n, const float* factors, float* sum) {
  constexpr int kVectors = 4;
  for (std::int64_t i = 0; i < n; i += kVectors * kLanes) {
    add_columns<kType, kVectors>(rows, i, n - i, factors, sum);
  }
}

}  // namespace

void pack_columns(const void* from, Element type, std::int64_t stride, std::int64_t rows,
                  std::int64_t depth, float* panel) {
  switch (type) {
    case Element::kF32:
      return pack_columns_of<Element::kF32>(from, stride, rows, depth, panel);
    case Element::kF16:
      return pack_columns_of<Element::kF16>(from, stride, rows, depth, panel);
    case Element::kBF16:
      return pack_columns_of<Element::kBF16>(from, stride, rows, depth, panel);
  }
}

void pack_rows(const void* from, Element type, std::int64_t stride, std::int64_t depth,
               std::int64_t cols, float* panel) {
  switch (type) {
    case Element::kF32:
      return pack_rows_of<Element::kF32>(from, stride, depth, cols, panel);
    case Element::kF16:
      return pack_rows_of<Element::kF16>(from, stride, depth, cols, panel);
    case Element::kBF16:
      return pack_rows_of<Element::kBF16>(from, stride, depth, cols, panel);
  }
}

void multiply(const float* a, const float* panel, std::int64_t rows, std::int64_t depth,
              Start start, float* c, std::int64_t c_stride) {
  multiply_strip<FusedMultiplyAdd>(a, panel, rows, depth, start, c, c_stride);
}

void dots(const ElementRows& rows, std::int64_t n, const float* a, Start start, float* sums) {
  switch (rows.type) {
    case Element::kF32:
      return dots_of<Element::kF32>(rows, n, a, start, sums);
    case Element::kF16:
      return dots_of<Element::kF16>(rows, n, a, start, sums);
    case Element::kBF16:
      return dots_of<Element::kBF16>(rows, n, a, start, sums);
  }
}

void add_rows(const ElementRows& rows, std::int64_t n, const float* factors, float* sum) {
  switch (rows.type) {
    case Element::kF32:
      return add_rows_of<Element::kF32>(rows, n, factors, sum);
    case Element::kF16:
      return add_rows_of<Element::kF16>(rows, n, factors, sum);
    case Element::kBF16:
      return add_rows_of<Element::kBF16>(rows, n, factors, sum);
  }
}

}  // namespace tidekv::cpu::avx512
