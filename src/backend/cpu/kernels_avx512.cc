// Kernels in AVX-512 (F, BW, VL, DQ), multiply-adds fused: softmax and rows of activations here,
// products in avx512_products.cc, quantised weights in avx512_blocks.cc.
#include "backend/cpu/avx512_bf16_products.h"
#include "backend/cpu/avx512_blocks.h"
#include "backend/cpu/avx512_products.h"
#include "backend/cpu/avx512_vectors.h"
#include "backend/cpu/kernels.h"

namespace tidekv::cpu {
namespace {

// Calls body(i, mask) for the vectors of a row of n elements.
template <typename Body>
inline void for_vectors(std::int64_t n, const Body& body) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    body(i, kAllLanes);
  }
  if (i < n) {
    body(i, first_lanes(n - i));
  }
}

template <Element kType>
struct Constant {};

template <typename Body>
inline void with_activation(Element type, const Body& body) {
  if (type == Element::kF32) {
    body(Constant<Element::kF32>{});
  } else {
    body(Constant<Element::kBF16>{});
  }
}

template <typename Body>
inline void with_element(Element type, const Body& body) {
  if (type == Element::kF16) {
    body(Constant<Element::kF16>{});
  } else {
    with_activation(type, body);
  }
}

void widen(const void* from, Element type, std::int64_t n, float* to) {
  with_element(type, [&]<Element kType>(Constant<kType>) {
    for_vectors(n, [&](std::int64_t i, __mmask16 mask) {
      store<Element::kF32>(load<kType>(from, i, mask), to, i, mask);
    });
  });
}

void narrow(const float* from, std::int64_t n, Element type, void* to) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    for_vectors(n, [&](std::int64_t i, __mmask16 mask) {
      store<kType>(load<Element::kF32>(from, i, mask), to, i, mask);
    });
  });
}

void narrow_add(const float* from, std::int64_t n, Element type, void* to) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    for_vectors(n, [&](std::int64_t i, __mmask16 mask) {
      const __m512 sum =
          _mm512_add_ps(load<Element::kF32>(from, i, mask), load<kType>(to, i, mask));
      store<kType>(sum, to, i, mask);
    });
  });
}

float max_product(const float* s, std::int64_t n) {
  const __m512 lowest = _mm512_set1_ps(-__builtin_inff());
  __m512 max[4] = {lowest, lowest, lowest, lowest};
  std::int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    TIDEKV_UNROLL
    for (int j = 0; j < 4; ++j) {
      max[j] = _mm512_max_ps(max[j], _mm512_loadu_ps(s + i + j * kLanes));
    }
  }
  for (; i < n; i += kLanes) {
    max[0] = _mm512_max_ps(max[0], _mm512_mask_loadu_ps(lowest, first_lanes(n - i), s + i));
  }
  return _mm512_reduce_max_ps(
      _mm512_max_ps(_mm512_max_ps(max[0], max[1]), _mm512_max_ps(max[2], max[3])));
}

// Vector v of a tile has its place in sum v % 4, so that the order is that of the keys' places in
// the tile, however many are seen.
float exponentials(float* s, std::int64_t n, float scale, float max) {
  const __m512 scales = _mm512_set1_ps(scale);
  const __m512 maxima = _mm512_set1_ps(max);
  __m512 sums[kSums] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                        _mm512_setzero_ps()};
  for (std::int64_t i = 0; i < n; i += kSums * kLanes) {
    __mmask16 masks[kSums];
    __m512 p[kSums];
    TIDEKV_UNROLL
    for (int j = 0; j < kSums; ++j) {
      masks[j] = first_lanes(n - i - j * kLanes);
      const __m512 products = _mm512_maskz_loadu_ps(masks[j], s + i + j * kLanes);
      p[j] = _mm512_fmsub_ps(products, scales, maxima);
    }
    exponentials_of(p);
    TIDEKV_UNROLL
    for (int j = 0; j < kSums; ++j) {
      _mm512_mask_storeu_ps(s + i + j * kLanes, masks[j], p[j]);
      sums[j] = _mm512_mask_add_ps(sums[j], masks[j], sums[j], p[j]);
    }
  }
  return _mm512_reduce_add_ps(
      _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

void weights(const float* s, std::int64_t n, float scale, float max, float normaliser, float* to) {
  for_vectors(n, [&](std::int64_t i, __mmask16 mask) {
    const __m512 p = exponential_of(_mm512_fmsub_ps(_mm512_maskz_loadu_ps(mask, s + i),
                                                    _mm512_set1_ps(scale), _mm512_set1_ps(max)));
    _mm512_mask_storeu_ps(to + i, mask, _mm512_div_ps(p, _mm512_set1_ps(normaliser)));
  });
}

float exponential(float x) { return _mm512_cvtss_f32(exponential_of(_mm512_set1_ps(x))); }

void multiply_by(float* x, std::int64_t n, float factor) {
  for_vectors(n, [&](std::int64_t i, __mmask16 mask) {
    const __m512 product = _mm512_mul_ps(load<Element::kF32>(x, i, mask), _mm512_set1_ps(factor));
    store<Element::kF32>(product, x, i, mask);
  });
}

void divide_by(float* x, std::int64_t n, float divisor) {
  for_vectors(n, [&](std::int64_t i, __mmask16 mask) {
    const __m512 quotient = _mm512_div_ps(load<Element::kF32>(x, i, mask), _mm512_set1_ps(divisor));
    store<Element::kF32>(quotient, x, i, mask);
  });
}

template <Element kType>
float inverse_root_mean_square(const void* x, std::int64_t n, float eps) {
  __m512 sums = _mm512_setzero_ps();
  for_vectors(n, [&](std::int64_t i, __mmask16 mask) {
    const __m512 value = load<kType>(x, i, mask);
    sums = _mm512_fmadd_ps(value, value, sums);
  });
  const float mean = _mm512_reduce_add_ps(sums) / static_cast<float>(n);
  return 1.0F / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + eps)));
}

void rms_norm(const void* x, Element type, const void* weight, Element weight_type, std::int64_t n,
              float eps, void* out) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    const __m512 inverse = _mm512_set1_ps(inverse_root_mean_square<kType>(x, n, eps));
    with_element(weight_type, [&]<Element kWeight>(Constant<kWeight>) {
      for_vectors(n, [&](std::int64_t i, __mmask16 mask) {
        const __m512 normal = _mm512_mul_ps(load<kType>(x, i, mask), inverse);
        store<kType>(_mm512_mul_ps(normal, load<kWeight>(weight, i, mask)), out, i, mask);
      });
    });
  });
}

void rotate(void* x, Element type, const float* cos, const float* sin, std::int64_t half) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    char* second_half = static_cast<char*>(x) + half * kElementBytes<kType>;
    for_vectors(half, [&](std::int64_t i, __mmask16 mask) {
      const __m512 first = load<kType>(x, i, mask);
      const __m512 second = load<kType>(second_half, i, mask);
      const __m512 c = load<Element::kF32>(cos, i, mask);
      const __m512 s = load<Element::kF32>(sin, i, mask);
      store<kType>(_mm512_fmsub_ps(first, c, _mm512_mul_ps(second, s)), x, i, mask);
      store<kType>(_mm512_fmadd_ps(second, c, _mm512_mul_ps(first, s)), second_half, i, mask);
    });
  });
}

void swiglu(const void* gate, const void* up, Element type, std::int64_t n, void* out) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    const __m512 one = _mm512_set1_ps(1.0F);
    for_vectors(n, [&](std::int64_t i, __mmask16 mask) {
      const __m512 g = load<kType>(gate, i, mask);
      // Above 89 the exponential is infinite in f32, and the result a zero.
      const __m512 power =
          _mm512_min_ps(_mm512_set1_ps(89.0F), _mm512_sub_ps(_mm512_setzero_ps(), g));
      const __m512 silu = _mm512_div_ps(g, _mm512_add_ps(one, exponential_of(power)));
      store<kType>(_mm512_mul_ps(silu, load<kType>(up, i, mask)), out, i, mask);
    });
  });
}

constexpr Kernels table_with(const Products* bf16_pairs) {
  return {
      .widen = widen,
      .narrow = narrow,
      .narrow_add = narrow_add,
      .pack_columns = avx512::pack_columns,
      .pack_rows = avx512::pack_rows,
      .multiply = avx512::multiply,
      .bf16_pairs = bf16_pairs,
      .dots = avx512::dots,
      .add_rows = avx512::add_rows,
      .expand = avx512::expand,
      .block_dots = avx512::block_dots,
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
}

}  // namespace

const Kernels kAvx512Kernels = table_with(nullptr);
const Kernels kAvx512Bf16Kernels = table_with(&avx512::kBf16Pairs);

}  // namespace tidekv::cpu
