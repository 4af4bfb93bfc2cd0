// The running softmax of one row of attention, shared by prefill and decode.
#pragma once

#include <cstdint>
#include <limits>

#include "backend/cpu/kernels.h"

namespace tidekv::cpu {

// Maximum and normaliser of what a row has seen so far. The next maximum is exact, so the bits
// follow from where tiles begin.
struct RunningSoftmax {
  float max = -std::numeric_limits<float>::infinity();
  float norm = 0.0F;

  // Factor for sums made under maximum `from` once the maximum is `to`.
  static float shrink(const Kernels& kernels, float from, float to) {
    return to == from ? 1.0F : kernels.exponential(from - to);
  }

  // Raises the maximum to that of a tile's `visible` query-key products. Returns the factor that
  // everything summed so far shrinks by.
  float raise(const Kernels& kernels, float scale, const float* products, std::int64_t visible) {
    const float tile_max = kernels.max_product(products, visible) * scale;
    const float new_max = tile_max > max ? tile_max : max;
    const float factor = shrink(kernels, max, new_max);
    max = new_max;
    return factor;
  }

  // Takes the products of a tile and turns them into probabilities; returns the same factor.
  float take(const Kernels& kernels, float scale, float* products, std::int64_t visible) {
    const float factor = raise(kernels, scale, products, visible);
    const float sum = kernels.exponentials(products, visible, scale, max);
    norm = norm * factor + sum;
    return factor;
  }
};

}  // namespace tidekv::cpu
