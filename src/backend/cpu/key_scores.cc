// Scores that keys have by themselves, no query asked.
#include <algorithm>
#include <cmath>

#include "backend/cpu/operations.h"

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kPiece = 256;  // elements widened at once

// Sum of squares. Eight sums side by side, added up in pairs: the same for every backend.
float sum_of_squares(const Kernels& kernels, DeviceView keys, std::int64_t slot) {
  constexpr std::int64_t kSums = 8;
  float wide[kPiece];
  float sums[kSums] = {};
  for (std::int64_t col = 0; col < keys.cols(); col += kPiece) {
    const std::int64_t count = std::min(kPiece, keys.cols() - col);
    kernels.widen(address(keys, slot, col), element_of(keys.dtype()), count, wide);
    for (std::int64_t i = 0; i < count; ++i) {
      sums[i % kSums] += wide[i] * wide[i];
    }
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

}  // namespace

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

}  // namespace tidekv::cpu
