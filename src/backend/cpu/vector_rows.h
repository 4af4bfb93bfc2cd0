// Element types, softmax and rows of activations in vectors (Kernels in kernels.h says what each
// does). Multiply-adds are fused.
#pragma once

#ifdef __AVX2__

#include "backend/cpu/kernels.h"
#include "backend/cpu/vectors.h"

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

void widen(const void* from, Element type, std::int64_t n, float* to) {
  with_element(type, [&]<Element kType>(Constant<kType>) {
    for_vectors(n, [&](std::int64_t i, LaneMask mask) {
      store<Element::kF32>(load<kType>(from, i, mask), to, i, mask);
    });
  });
}

void narrow(const float* from, std::int64_t n, Element type, void* to) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    for_vectors(n, [&](std::int64_t i, LaneMask mask) {
      store<kType>(load<Element::kF32>(from, i, mask), to, i, mask);
    });
  });
}

void narrow_add(const float* from, std::int64_t n, Element type, void* to) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    for_vectors(n, [&](std::int64_t i, LaneMask mask) {
      store<kType>(add(load<Element::kF32>(from, i, mask), load<kType>(to, i, mask)), to, i, mask);
    });
  });
}

float max_product(const float* s, std::int64_t n) {
  const Vector lowest = all_lanes(-__builtin_inff());
  Vector max[kSums] = {lowest, lowest, lowest, lowest};
  std::int64_t i = 0;
  for (; i + kSums * kLanes <= n; i += kSums * kLanes) {
    TIDEKV_UNROLL
    for (int j = 0; j < kSums; ++j) {
      max[j] = larger(max[j], load<Element::kF32>(s, i + j * kLanes));
    }
  }
  for (; i < n; i += kLanes) {
    const LaneMask mask = first_lanes(n - i);
    max[0] = larger(max[0], pick(mask, load<Element::kF32>(s, i, mask), lowest));
  }
  return largest_of_lanes(larger(larger(max[0], max[1]), larger(max[2], max[3])));
}

// Four vectors of probabilities, of which `count` elements are seen.
struct Softmax {
  Vector scale;
  Vector max;

  void take(float* s, std::int64_t count, Vector (&sums)[kSums]) const {
    LaneMask masks[kSums];
    Vector p[kSums];
    TIDEKV_UNROLL
    for (int j = 0; j < kSums; ++j) {
      masks[j] = first_lanes(count - j * kLanes);
      p[j] = multiply_subtract(load<Element::kF32>(s, j * kLanes, masks[j]), scale, max);
    }
    exponentials_of(p);
    TIDEKV_UNROLL
    for (int j = 0; j < kSums; ++j) {
      store<Element::kF32>(p[j], s, j * kLanes, masks[j]);
      sums[j] = pick(masks[j], add(sums[j], p[j]), sums[j]);
    }
  }
};

// Vector v of a tile has its place in sum v % 4, so that the order is that of the keys' places in
// the tile, however many are seen.
float exponentials(float* s, std::int64_t n, float scale, float max) {
  constexpr std::int64_t kStep = kSums * kLanes;
  const Softmax softmax{all_lanes(scale), all_lanes(max)};
  Vector sums[kSums] = {zeros(), zeros(), zeros(), zeros()};
  std::int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    softmax.take(s + i, kStep, sums);
  }
  if (i < n) {
    softmax.take(s + i, n - i, sums);
  }
  return sum_of_lanes(add_up(sums));
}

void weights(const float* s, std::int64_t n, float scale, float max, float normaliser, float* to) {
  for_vectors(n, [&](std::int64_t i, LaneMask mask) {
    const Vector p = exponential_of(
        multiply_subtract(load<Element::kF32>(s, i, mask), all_lanes(scale), all_lanes(max)));
    store<Element::kF32>(divide(p, all_lanes(normaliser)), to, i, mask);
  });
}

float exponential(float x) {
  float lanes[kLanes];
  store<Element::kF32>(exponential_of(all_lanes(x)), lanes, 0);
  return lanes[0];
}

void multiply_by(float* x, std::int64_t n, float factor) {
  for_vectors(n, [&](std::int64_t i, LaneMask mask) {
    store<Element::kF32>(multiply(load<Element::kF32>(x, i, mask), all_lanes(factor)), x, i, mask);
  });
}

void divide_by(float* x, std::int64_t n, float divisor) {
  for_vectors(n, [&](std::int64_t i, LaneMask mask) {
    store<Element::kF32>(divide(load<Element::kF32>(x, i, mask), all_lanes(divisor)), x, i, mask);
  });
}

template <Element kType>
float inverse_root_mean_square(const void* x, std::int64_t n, float eps) {
  Vector sums = zeros();
  for_vectors(n, [&](std::int64_t i, LaneMask mask) {
    const Vector value = load<kType>(x, i, mask);
    sums = multiply_add(value, value, sums);
  });
  const float mean = sum_of_lanes(sums) / static_cast<float>(n);
  return 1.0F / _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(mean + eps)));
}

void rms_norm(const void* x, Element type, const void* weight, Element weight_type, std::int64_t n,
              float eps, void* out) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    const Vector inverse = all_lanes(inverse_root_mean_square<kType>(x, n, eps));
    with_element(weight_type, [&]<Element kWeight>(Constant<kWeight>) {
      for_vectors(n, [&](std::int64_t i, LaneMask mask) {
        const Vector normal = multiply(load<kType>(x, i, mask), inverse);
        store<kType>(multiply(normal, load<kWeight>(weight, i, mask)), out, i, mask);
      });
    });
  });
}

void rotate(void* x, Element type, const float* cos, const float* sin, std::int64_t half) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    char* second_half = static_cast<char*>(x) + half * kElementBytes<kType>;
    for_vectors(half, [&](std::int64_t i, LaneMask mask) {
      const Vector first = load<kType>(x, i, mask);
      const Vector second = load<kType>(second_half, i, mask);
      const Vector c = load<Element::kF32>(cos, i, mask);
      const Vector s = load<Element::kF32>(sin, i, mask);
      store<kType>(multiply_subtract(first, c, multiply(second, s)), x, i, mask);
      store<kType>(multiply_add(second, c, multiply(first, s)), second_half, i, mask);
    });
  });
}

void swiglu(const void* gate, const void* up, Element type, std::int64_t n, void* out) {
  with_activation(type, [&]<Element kType>(Constant<kType>) {
    for_vectors(n, [&](std::int64_t i, LaneMask mask) {
      const Vector g = load<kType>(gate, i, mask);
      // Above 89 the exponential is infinite in f32, and the result a zero.
      const Vector power = smaller(all_lanes(89.0F), subtract(zeros(), g));
      const Vector silu = divide(g, add(all_lanes(1.0F), exponential_of(power)));
      store<kType>(multiply(silu, load<kType>(up, i, mask)), out, i, mask);
    });
  });
}

}  // namespace
}  // namespace tidekv::cpu

#endif
