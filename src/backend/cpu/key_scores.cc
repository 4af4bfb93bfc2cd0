// Scores that keys have by themselves, no query asked.
#include <algorithm>
#include <cmath>

#include "backend/cpu/operations.h"

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kPiece = 256;  // elements widened at once
// Keys whose directions are added at once, counted from slot 0.
constexpr std::int64_t kTileKeys = 256;
// A direction divides by no less, and no length counts as less in a cosine.
constexpr float kLeastDivisor = 1e-12F;
constexpr float kLeastLength = 1e-8F;

}  // namespace

// Eight sums side by side, added up in pairs: the same for every instruction set.
float sum_of_squares(const Kernels& kernels, DeviceView rows, std::int64_t row) {
  constexpr std::int64_t kSums = 8;
  float wide[kPiece];
  float sums[kSums] = {};
  for (std::int64_t col = 0; col < rows.cols(); col += kPiece) {
    const std::int64_t count = std::min(kPiece, rows.cols() - col);
    kernels.widen(address(rows, row, col), element_of(rows.dtype()), count, wide);
    for (std::int64_t i = 0; i < count; ++i) {
      sums[i % kSums] += wide[i] * wide[i];
    }
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

void score_key_norms(const Context& context, const KvView& kv, KeyRange range, DeviceView scores) {
  for (std::int64_t h = 0; h < kv.num_kv_heads(); ++h) {
    const std::int64_t first_slot = kv.heads[static_cast<std::size_t>(h)].offset + range.begin;
    float* to = floats(scores, h);
    for_row_pieces(context.pool, range.len(), kv.head_dim(),
                   [&](std::int64_t first, std::int64_t count, int) {
                     for (std::int64_t i = first; i < first + count; ++i) {
                       to[i] = -std::sqrt(sum_of_squares(context.kernels, kv.keys, first_slot + i));
                     }
                   });
  }
}

void mean_directions(const Context& context, const KvView& kv, DeviceView anchors) {
  const std::int64_t dim = kv.head_dim();
  context.pool.parallel_for(kv.num_kv_heads(), [&](std::int64_t h, int) {
    const HeadSpan& head = kv.heads[static_cast<std::size_t>(h)];
    float* anchor = floats(anchors, h);
    std::fill_n(anchor, dim, 0.0F);
    float factors[kTileKeys];
    for (std::int64_t slot = 0; slot < head.len; slot += kTileKeys) {
      const std::int64_t first = head.offset + slot;
      const std::int64_t count = std::min(kTileKeys, head.len - slot);
      for (std::int64_t i = 0; i < count; ++i) {
        const float length = std::sqrt(sum_of_squares(context.kernels, kv.keys, first + i));
        factors[i] = 1.0F / std::max(length, kLeastDivisor);
      }
      context.kernels.add_rows({address(kv.keys, first), element_of(kv.keys.dtype()), dim, count},
                               dim, {factors, kTileKeys, 1}, {anchor, dim, 1});
    }
    context.kernels.divide_by(anchor, dim, static_cast<float>(head.len));
  });
}

void score_directions(const Context& context, const KvView& kv, DeviceView anchors, KeyRange range,
                      DeviceView scores) {
  const std::int64_t dim = kv.head_dim();
  for (std::int64_t h = 0; h < kv.num_kv_heads(); ++h) {
    const std::int64_t first_slot = kv.heads[static_cast<std::size_t>(h)].offset + range.begin;
    float* anchor = floats(anchors, h);
    float* to = floats(scores, h);
    for_row_pieces(
        context.pool, range.len(), dim, [&](std::int64_t first, std::int64_t count, int) {
          const float anchor_length =
              std::max(std::sqrt(sum_of_squares(context.kernels, anchors, h)), kLeastLength);
          context.kernels.dots(
              {address(kv.keys, first_slot + first), element_of(kv.keys.dtype()), dim, count}, dim,
              {anchor, dim, 1}, Start::kZero, {to + first, count, 1});
          for (std::int64_t i = first; i < first + count; ++i) {
            const float length =
                std::sqrt(sum_of_squares(context.kernels, kv.keys, first_slot + i));
            to[i] = -(to[i] / (std::max(length, kLeastLength) * anchor_length));
          }
        });
  }
}

}  // namespace tidekv::cpu
