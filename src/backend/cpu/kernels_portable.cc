// Kernels in plain C++, for any processor. Loops over 16 partial results let the compiler use
// whatever vectors the target has without changing an order of operations.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "backend/cpu/kernels.h"
#include "backend/cpu/portable_blocks.h"
#include "tensor/dtype.h"

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kLanes = 16;

// Elements may lie at any address: weights come straight from a mapped file.
template <Element kType>
struct Storage;

template <>
struct Storage<Element::kF32> {
  using Bits = float;
  static float load(float bits) { return bits; }
  static float store(float value) { return value; }
};

template <>
struct Storage<Element::kBF16> {
  using Bits = std::uint16_t;
  static float load(std::uint16_t bits) { return bf16_to_float(bits); }
  static std::uint16_t store(float value) { return float_to_bf16(value); }
};

template <>
struct Storage<Element::kF16> {
  using Bits = std::uint16_t;
  static float load(std::uint16_t bits) { return f16_to_float(bits); }
};

template <Element kType>
float load(const void* from, std::int64_t i) {
  typename Storage<kType>::Bits bits;
  std::memcpy(&bits, static_cast<const std::byte*>(from) + i * std::int64_t{sizeof(bits)},
              sizeof(bits));
  return Storage<kType>::load(bits);
}

template <Element kType>
void store(float value, void* to, std::int64_t i) {
  const typename Storage<kType>::Bits bits = Storage<kType>::store(value);
  std::memcpy(static_cast<std::byte*>(to) + i * std::int64_t{sizeof(bits)}, &bits, sizeof(bits));
}

template <Element kType>
using Constant = std::integral_constant<Element, kType>;

// Calls body with the type as a compile-time constant.
template <typename Body>
void with_element(Element type, const Body& body) {
  switch (type) {
    case Element::kF32:
      return body(Constant<Element::kF32>{});
    case Element::kF16:
      return body(Constant<Element::kF16>{});
    case Element::kBF16:
      return body(Constant<Element::kBF16>{});
  }
}

template <typename Body>
void with_activation(Element type, const Body& body) {
  if (type == Element::kF32) {
    body(Constant<Element::kF32>{});
  } else {
    body(Constant<Element::kBF16>{});
  }
}

// exp(x): x = n ln2 + r, |r| <= ln2 / 2, and 1 + r + r^2 q(r), q interpolated at Chebyshev nodes
// (relative error 0.2 of 2^-24). Exactly 1 at 0, 0 below -104, infinite above 89; NaN stays NaN.
float exponential(float x) {
  constexpr float kRoundToInteger = 0x1.8p23F;
  const float low = x < -104.0F ? -104.0F : x;
  const float clamped = low > 89.0F ? 89.0F : low;
  const float shifted = clamped * 0x1.715476p+0F + kRoundToInteger;
  const float n = shifted - kRoundToInteger;
  const float r = (clamped - n * 0x1.63p-1F) + n * 0x1.bd0106p-13F;  // ln2 in two parts
  float q = 0.0013926550F;
  q = q * r + 0.0083634727F;
  q = q * r + 0.0416665524F;
  q = q * r + 0.1666657522F;
  q = q * r + 0.5F;
  const float p = 1.0F + (r + (r * r) * q);
  // 2^n as two factors, so that results down to the smallest subnormal are rounded once.
  const auto exponent = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(shifted) -
                                                  std::bit_cast<std::uint32_t>(kRoundToInteger));
  const std::int32_t half = exponent / 2;
  const auto power = [](std::int32_t e) {
    return std::bit_cast<float>((static_cast<std::uint32_t>(e) + 127U) << 23);
  };
  return p * power(half) * power(exponent - half);
}

// Sum of partial sums, in one fixed tree.
template <std::int64_t kCount>
float sum_lanes(float (&lanes)[kCount]) {
  for (std::int64_t width = kCount / 2; width > 0; width /= 2) {
    for (std::int64_t i = 0; i < width; ++i) {
      lanes[i] += lanes[i + width];
    }
  }
  return lanes[0];
}

// Calls body(i, i % kCount) for i < n, in blocks that vectorise.
template <std::int64_t kCount = kLanes, typename Body>
void for_lanes(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + kCount <= n; i += kCount) {
    for (std::int64_t lane = 0; lane < kCount; ++lane) {
      body(i + lane, lane);
    }
  }
  for (std::int64_t lane = 0; i + lane < n; ++lane) {
    body(i + lane, lane);
  }
}

void widen(const void* from, Element type, std::int64_t n, float* to) {
  with_element(type, [&]<Element kType>(Constant<kType>) {
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = load<kType>(from, i);
    }
  });
}

void narrow(const float* from, std::int64_t n, Element type, void* to) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    for (std::int64_t i = 0; i < n; ++i) {
      store<kType>(from[i], to, i);
    }
  });
}

void narrow_add(const float* from, std::int64_t n, Element type, void* to) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    for (std::int64_t i = 0; i < n; ++i) {
      store<kType>(from[i] + load<kType>(to, i), to, i);
    }
  });
}

void pack_columns(const void* from, Element type, std::int64_t stride, std::int64_t rows,
                  std::int64_t depth, float* panel) {
  with_element(type, [&]<Element kType>(Constant<kType>) {
    for (std::int64_t c = 0; c < depth; ++c) {
      float* to = panel + c * kPanelCols;
      for (std::int64_t r = 0; r < rows; ++r) {
        to[r] = load<kType>(from, r * stride + c);
      }
      for (std::int64_t r = rows; r < kPanelCols; ++r) {
        to[r] = 0.0F;
      }
    }
  });
}

void pack_rows(const void* from, Element type, std::int64_t stride, std::int64_t depth,
               std::int64_t cols, float* panel) {
  with_element(type, [&]<Element kType>(Constant<kType>) {
    for (std::int64_t r = 0; r < depth; ++r) {
      float* to = panel + r * kPanelCols;
      for (std::int64_t c = 0; c < cols; ++c) {
        to[c] = load<kType>(from, r * stride + c);
      }
      for (std::int64_t c = cols; c < kPanelCols; ++c) {
        to[c] = 0.0F;
      }
    }
  });
}

// Four floats, in one register on every target (an extension that g++ and clang share).
using Quad [[gnu::vector_size(16)]] = float;

Quad load_quad(const float* from) {
  Quad quad;
  std::memcpy(&quad, from, sizeof(quad));
  return quad;
}

// A tile of kRows x 8 accumulators: with 4 rows it fits the 16 registers of plain x86-64.
template <std::int64_t kRows>
void multiply_block(const float* a, const float* panel, std::int64_t depth, Start start, float* c,
                    std::int64_t c_stride) {
  constexpr std::int64_t kQuads = 2;
  for (std::int64_t col = 0; col < kPanelCols; col += 4 * kQuads) {
    Quad sums[kRows][kQuads] = {};
    for (std::int64_t r = 0; r < kRows && start == Start::kContinue; ++r) {
      for (std::int64_t j = 0; j < kQuads; ++j) {
        sums[r][j] = load_quad(c + r * c_stride + col + 4 * j);
      }
    }
    for (std::int64_t k = 0; k < depth; ++k) {
      const Quad left = load_quad(panel + k * kPanelCols + col);
      const Quad right = load_quad(panel + k * kPanelCols + col + 4);
      for (std::int64_t r = 0; r < kRows; ++r) {
        sums[r][0] += a[r * kRowStride + k] * left;
        sums[r][1] += a[r * kRowStride + k] * right;
      }
    }
    for (std::int64_t r = 0; r < kRows; ++r) {
      std::memcpy(c + r * c_stride + col, sums[r], sizeof(sums[r]));
    }
  }
}

template <std::int64_t kRows>
void multiply_rows(const float* a, const float* panel, std::int64_t depth, Start start, float* c,
                   std::int64_t c_stride) {
  if (start != Start::kAdd) {
    multiply_block<kRows>(a, panel, depth, start, c, c_stride);
    return;
  }
  float product[kRows * kPanelCols];
  multiply_block<kRows>(a, panel, depth, Start::kZero, product, kPanelCols);
  for (std::int64_t r = 0; r < kRows; ++r) {
    for (std::int64_t col = 0; col < kPanelCols; ++col) {
      c[r * c_stride + col] += product[r * kPanelCols + col];
    }
  }
}

void multiply(const float* a, const float* panel, std::int64_t rows, std::int64_t depth,
              Start start, float* c, std::int64_t c_stride) {
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    multiply_rows<4>(a + row * kRowStride, panel, depth, start, c + row * c_stride, c_stride);
  }
  for (; row < rows; ++row) {
    multiply_rows<1>(a + row * kRowStride, panel, depth, start, c + row * c_stride, c_stride);
  }
}

// Lane i of a row goes into sum i % 64, so that a sum is a 64th of a row long.
void dots(const ElementRows& rows, std::int64_t n, const FloatRows& a, Start start,
          const FloatRows& sums) {
  constexpr std::int64_t kSums = 64;
  with_element(rows.type, [&]<Element kType>(Constant<kType>) {
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      const auto* row = static_cast<const std::byte*>(rows.data) +
                        r * rows.stride * std::int64_t{sizeof(typename Storage<kType>::Bits)};
      for (std::int64_t v = 0; v < a.rows; ++v) {
        float lanes[kSums] = {};
        for_lanes<kSums>(n, [&](std::int64_t i, std::int64_t lane) {
          lanes[lane] += load<kType>(row, i) * a.row(v)[i];
        });
        const float sum = sum_lanes(lanes);
        float& to = sums.row(v)[r];
        to = start == Start::kZero ? sum : to + sum;
      }
    }
  });
}

void add_rows(const ElementRows& rows, std::int64_t n, const FloatRows& factors,
              const FloatRows& sums) {
  with_element(rows.type, [&]<Element kType>(Constant<kType>) {
    for (std::int64_t r = 0; r < rows.rows; ++r) {
      for (std::int64_t v = 0; v < factors.rows; ++v) {
        for (std::int64_t i = 0; i < n; ++i) {
          sums.row(v)[i] += factors.row(v)[r] * load<kType>(rows.data, r * rows.stride + i);
        }
      }
    }
  });
}

void expand_codes(const CodeRow& row, std::int64_t n, float* to) {
  const auto* bytes = static_cast<const std::uint8_t*>(row.codes);
  const std::int64_t per_byte = 8 / row.bits;
  const auto mask = static_cast<std::uint32_t>((1 << row.bits) - 1);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto shift = static_cast<std::uint32_t>(i % per_byte * row.bits);
    const auto code = static_cast<float>((bytes[i / per_byte] >> shift) & mask);
    to[i] = code * row.scales[i / row.group_len] + row.minima[i / row.group_len];
  }
}

float max_product(const float* s, std::int64_t n) {
  float lanes[kLanes];
  std::fill_n(lanes, kLanes, -std::numeric_limits<float>::infinity());
  for_lanes(n, [&](std::int64_t i, std::int64_t lane) {
    lanes[lane] = s[i] > lanes[lane] ? s[i] : lanes[lane];
  });
  return *std::max_element(lanes, lanes + kLanes);
}

float exponentials(float* s, std::int64_t n, float scale, float max) {
  float lanes[kLanes] = {};
  for_lanes(n, [&](std::int64_t i, std::int64_t lane) {
    s[i] = exponential(s[i] * scale - max);
    lanes[lane] += s[i];
  });
  return sum_lanes(lanes);
}

void weights(const float* s, std::int64_t n, float scale, float max, float normaliser,
             float* weights) {
  for (std::int64_t i = 0; i < n; ++i) {
    weights[i] = exponential(s[i] * scale - max) / normaliser;
  }
}

void multiply_by(float* x, std::int64_t n, float factor) {
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] *= factor;
  }
}

void divide_by(float* x, std::int64_t n, float divisor) {
  for (std::int64_t i = 0; i < n; ++i) {
    x[i] /= divisor;
  }
}

template <Element kType>
float inverse_root_mean_square(const void* x, std::int64_t n, float eps) {
  float lanes[kLanes] = {};
  for_lanes(n, [&](std::int64_t i, std::int64_t lane) {
    const float value = load<kType>(x, i);
    lanes[lane] += value * value;
  });
  return 1.0F / std::sqrt(sum_lanes(lanes) / static_cast<float>(n) + eps);
}

void rms_norm(const void* x, Element type, const void* weight, Element weight_type, std::int64_t n,
              float eps, void* out) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    const float inverse = inverse_root_mean_square<kType>(x, n, eps);
    with_element(weight_type, [&]<Element kWeight>(Constant<kWeight>) {
      for (std::int64_t i = 0; i < n; ++i) {
        store<kType>(load<kType>(x, i) * inverse * load<kWeight>(weight, i), out, i);
      }
    });
  });
}

void rotate(void* x, Element type, const float* cos, const float* sin, std::int64_t half) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    for (std::int64_t i = 0; i < half; ++i) {
      const float first = load<kType>(x, i);
      const float second = load<kType>(x, i + half);
      store<kType>(first * cos[i] - second * sin[i], x, i);
      store<kType>(second * cos[i] + first * sin[i], x, i + half);
    }
  });
}

void swiglu(const void* gate, const void* up, Element type, std::int64_t n, void* out) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    for (std::int64_t i = 0; i < n; ++i) {
      const float g = load<kType>(gate, i);
      store<kType>(g / (1.0F + exponential(-g)) * load<kType>(up, i), out, i);
    }
  });
}

}  // namespace

const Kernels kPortableKernels = {
    .widen = widen,
    .narrow = narrow,
    .narrow_add = narrow_add,
    .pack_columns = pack_columns,
    .pack_rows = pack_rows,
    .multiply = multiply,
    .dots = dots,
    .add_rows = add_rows,
    .expand = portable::expand,
    .block_dots = portable::block_dots,
    .expand_codes = expand_codes,
    .max_product = max_product,
    .exponentials = exponentials,
    .weights = weights,
    .exponential = exponential,
    .multiply_by = multiply_by,
    .divide_by = divide_by,
    .rms_norm = rms_norm,
    .rotate = rotate,
    .swiglu = swiglu,
};

}  // namespace tidekv::cpu
