// Scores by the attention that queries still to come may be expected to pay (Expected Attention):
// of the prompt's queries the mean and the sums of squares, turned to the positions ahead.
#include <algorithm>
#include <cmath>

#include "backend/cpu/operations.h"
#include "backend/cpu/running_softmax.h"
#include "base/check.h"

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kMaxHeadDim = 256;

// Rows of one query head's moments: the mean, then D rows of sums of products.
float* mean_of(DeviceView moments, std::int64_t q_head) {
  return floats(moments, q_head * (moments.cols() + 1));
}
float* products_of(DeviceView moments, std::int64_t q_head) {
  return mean_of(moments, q_head) + moments.cols();
}

// A head of a rotated row, as it was before: turned by minus the row's angles.
void turn_back(const float* angles, std::int64_t half, float* x) {
  for (std::int64_t i = 0; i < half; ++i) {
    const float left = x[i];
    const float right = x[half + i];
    x[i] = left * angles[i] + right * angles[half + i];
    x[half + i] = right * angles[i] - left * angles[half + i];
  }
}

// Welford's update: `count` rows with this one. The products' row is scaled on one side only.
void add_row(const Kernels& kernels, float* x, std::int64_t dim, std::int64_t count, float* mean,
             float* products) {
  float scaled[kMaxHeadDim];
  const float share = 1.0F / static_cast<float>(count);
  for (std::int64_t i = 0; i < dim; ++i) {
    x[i] -= mean[i];
    mean[i] += x[i] * share;
    scaled[i] = x[i] - x[i] * share;
  }
  kernels.add_rows({scaled, Element::kF32, dim, 1}, dim, {x, 1, dim}, {products, dim, dim});
}

// The rotation of the positions first, first + 1, ... on average.
struct MeanRotation {
  float cos[kMaxHeadDim / 2];
  float sin[kMaxHeadDim / 2];
  std::int64_t half = 0;

  void turn(float* x, std::int64_t stride) const {
    for (std::int64_t i = 0; i < half; ++i) {
      const float left = x[i * stride];
      const float right = x[(half + i) * stride];
      x[i * stride] = left * cos[i] - right * sin[i];
      x[(half + i) * stride] = right * cos[i] + left * sin[i];
    }
  }
};

MeanRotation mean_rotation(DeviceView inverse_freq, Position first, std::int64_t count) {
  MeanRotation rotation;
  rotation.half = inverse_freq.cols();
  for (std::int64_t i = 0; i < rotation.half; ++i) {
    double cos = 0;
    double sin = 0;
    for (std::int64_t ahead = 0; ahead < count; ++ahead) {
      const double angle =
          static_cast<float>(index_of(first) + ahead) * floats(inverse_freq)[i];  // as rope_angles
      cos += std::cos(angle);
      sin += std::sin(angle);
    }
    rotation.cos[i] = static_cast<float>(cos / static_cast<double>(count));
    rotation.sin[i] = static_cast<float>(sin / static_cast<double>(count));
  }
  return rotation;
}

// logits[i] of keys first_slot + i < n <= kKeyTile: k m + k C k, with what a head expects in m, C.
void expected_logits(const Context& context, DeviceView keys, std::int64_t first_slot,
                     std::int64_t n, DeviceView expected, std::int64_t q_head, float* logits) {
  constexpr std::int64_t kKeysAtOnce = 8;
  const std::int64_t dim = keys.cols();
  float* const mean = mean_of(expected, q_head);
  const ElementRows products{products_of(expected, q_head), Element::kF32, dim, dim};
  context.kernels.dots({address(keys, first_slot), element_of(keys.dtype()), dim, n}, dim,
                       {mean, dim, 1}, Start::kZero, {logits, n, 1});
  float wide[kKeysAtOnce * kMaxHeadDim];
  float turned[kKeysAtOnce * kMaxHeadDim];
  for (std::int64_t i = 0; i < n; i += kKeysAtOnce) {
    const std::int64_t count = std::min(kKeysAtOnce, n - i);
    context.kernels.widen(address(keys, first_slot + i), element_of(keys.dtype()), count * dim,
                          wide);
    std::fill_n(turned, count * dim, 0.0F);
    context.kernels.add_rows(products, dim, {wide, dim, count}, {turned, dim, count});
    for (std::int64_t key = 0; key < count; ++key) {
      float square = 0;
      context.kernels.dots({wide + key * dim, Element::kF32, dim, 1}, dim,
                           {turned + key * dim, dim, 1}, Start::kZero, {&square, 1, 1});
      logits[i + key] += square;
    }
  }
}

}  // namespace

void observe_queries(const Context& context, DeviceView q, DeviceView angles,
                     std::int64_t num_before, DeviceView moments) {
  const std::int64_t dim = moments.cols();
  TIDEKV_CHECK_OP(dim, <=, kMaxHeadDim);
  context.pool.parallel_for(q.cols() / dim, [&](std::int64_t q_head, int) {
    float* const mean = mean_of(moments, q_head);
    if (num_before == 0) {
      std::fill_n(mean, (dim + 1) * dim, 0.0F);
    }
    float x[kMaxHeadDim];
    for (std::int64_t row = 0; row < q.rows(); ++row) {
      context.kernels.widen(address(q, row, q_head * dim), element_of(q.dtype()), dim, x);
      turn_back(floats(angles, row), dim / 2, x);
      add_row(context.kernels, x, dim, num_before + row + 1, mean, products_of(moments, q_head));
    }
  });
}

void expect_queries(const Context& context, DeviceView moments, std::int64_t num_observed,
                    DeviceView inverse_freq, const Backend::PositionsAhead& ahead,
                    DeviceView expected) {
  const std::int64_t dim = moments.cols();
  const MeanRotation rotation = mean_rotation(inverse_freq, ahead.first, ahead.count);
  const float scale = 1.0F / std::sqrt(static_cast<float>(dim));
  const float product_scale =
      0.5F / static_cast<float>(dim) / static_cast<float>(std::max<std::int64_t>(num_observed, 1));
  context.pool.parallel_for(moments.rows() / (dim + 1), [&](std::int64_t q_head, int) {
    float* const mean = mean_of(expected, q_head);
    float* const products = products_of(expected, q_head);
    if (num_observed == 0) {
      std::fill_n(mean, (dim + 1) * dim, 0.0F);
      return;
    }
    std::copy_n(mean_of(moments, q_head), (dim + 1) * dim, mean);
    context.kernels.multiply_by(mean, dim, scale);
    context.kernels.multiply_by(products, dim * dim, product_scale);
    rotation.turn(mean, 1);
    for (std::int64_t row = 0; row < dim; ++row) {
      rotation.turn(products + row * dim, 1);
    }
    for (std::int64_t col = 0; col < dim; ++col) {
      rotation.turn(products + col, dim);
    }
  });
}

void expected_lse(const Context& context, const KvView& kv, DeviceView expected, KeyRange range,
                  DeviceView lse) {
  const std::int64_t num_q_heads = lse.rows() / 2;
  const std::int64_t group = num_q_heads / kv.num_kv_heads();
  context.pool.parallel_for(num_q_heads, [&](std::int64_t q_head, int) {
    const HeadSpan& head = kv.heads[static_cast<std::size_t>(q_head / group)];
    float logits[kKeyTile];
    RunningSoftmax softmax;
    for (std::int64_t slot = range.begin; slot < range.end; slot += kKeyTile) {
      const std::int64_t n = std::min(kKeyTile, range.end - slot);
      expected_logits(context, kv.keys, head.offset + slot, n, expected, q_head, logits);
      softmax.take(context.kernels, 1.0F, logits, n);
    }
    *floats(lse, q_head) = softmax.max;
    *floats(lse, num_q_heads + q_head) = softmax.norm;
  });
}

void score_expected(const Context& context, const KvView& kv, DeviceView expected, DeviceView lse,
                    KeyRange range, DeviceView scores) {
  const std::int64_t num_q_heads = lse.rows() / 2;
  const std::int64_t group = num_q_heads / kv.num_kv_heads();
  const std::int64_t num_tiles = (range.len() + kKeyTile - 1) / kKeyTile;
  context.pool.parallel_for(kv.num_kv_heads() * num_tiles, [&](std::int64_t task, int) {
    const std::int64_t kv_head = task / num_tiles;
    const std::int64_t first = task % num_tiles * kKeyTile;
    const std::int64_t n = std::min(kKeyTile, range.len() - first);
    const std::int64_t slot =
        kv.heads[static_cast<std::size_t>(kv_head)].offset + range.begin + first;
    float logits[kKeyTile];
    float weights[kKeyTile];
    float* const to = floats(scores, kv_head) + first;
    std::fill_n(to, n, 0.0F);
    for (std::int64_t q_head = kv_head * group; q_head < (kv_head + 1) * group; ++q_head) {
      expected_logits(context, kv.keys, slot, n, expected, q_head, logits);
      context.kernels.weights(logits, n, 1.0F, *floats(lse, q_head),
                              *floats(lse, num_q_heads + q_head), weights);
      for (std::int64_t i = 0; i < n; ++i) {
        to[i] += weights[i];
      }
    }
    for (std::int64_t i = 0; i < n; ++i) {
      to[i] = to[i] / static_cast<float>(group) *
              std::sqrt(sum_of_squares(context.kernels, kv.values, slot + i));
    }
  });
}

}  // namespace tidekv::cpu
