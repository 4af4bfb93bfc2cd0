// attend with all scores in memory, as frameworks without a fused kernel run it: products of
// queries and keys under the mask, their softmax beside them, then the values.
//
// Each step is done for all keys before the next begins. Sums run in the order of
// attention_tiles.h: a weight is relative to the largest score up to its tile, and what came before
// shrinks when a tile has a larger one. So the bits are those of the walk that keeps no scores.
#include <algorithm>
#include <limits>

#include "backend/cpu/attention_tiles.h"

namespace tidekv::cpu {
namespace {

// Scores of the rows of one KV head, and the weights they become: [rows, num_keys] each.
struct HeadScores {
  float* scores = nullptr;
  float* weights = nullptr;
  std::int64_t num_keys = 0;

  float* score(std::int64_t row, std::int64_t key) const { return scores + row * num_keys + key; }
  float* weight(std::int64_t row, std::int64_t key) const { return weights + row * num_keys + key; }
};

HeadScores scores_of(const AttentionOperands& on, const RowBlock& block,
                     const AttentionOptions& options) {
  std::int64_t keys_before = 0;
  for (std::int64_t head = 0; head < block.kv_head; ++head) {
    keys_before += on.kv.heads[static_cast<std::size_t>(head)].len;
  }
  const std::int64_t first = on.shape.num_rows() * keys_before;
  return {floats(options.scores) + first, floats(options.weights) + first, on.head(block).len};
}

template <typename Visit>
void for_tiles(std::int64_t num_keys, const Visit& visit) {
  for (std::int64_t begin = 0; begin < num_keys; begin += kKeyTile) {
    visit(KeyTile{begin, std::min(kKeyTile, num_keys - begin)});
  }
}

// Scores of the block: products, and minus infinity where the mask is.
void score(const AttentionOperands& on, const RowBlock& block, const HeadScores& head,
           const AttentionScratch& scratch) {
  constexpr float kMasked = -std::numeric_limits<float>::infinity();
  load_queries(on, block, scratch);
  for_tiles(head.num_keys, [&](const KeyTile& tile) {
    if (on.visible(block, block.count - 1, tile) > 0) {
      pack_keys(on, block, tile, scratch);
    }
    for (std::int64_t strip = 0; strip < block.count; strip += kStripRows) {
      const std::int64_t rows = std::min(kStripRows, block.count - strip);
      multiply_keys(on.shape, scratch.queries + strip * kRowStride, rows,
                    on.visible(block, strip + rows - 1, tile), scratch);
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t visible = on.visible(block, strip + r, tile);
        float* to = head.score(block.first + strip + r, tile.begin);
        std::copy_n(scratch.logits + r * kRowStride, visible, to);
        std::fill_n(to + visible, tile.len - visible, kMasked);
      }
    }
  });
}

// Weights of the block's rows, undivided, and in scratch their maxima and normalisers.
void soften(const AttentionOperands& on, const RowBlock& block, const HeadScores& head,
            const AttentionScratch& scratch) {
  for (std::int64_t r = 0; r < block.count; ++r) {
    RunningSoftmax softmax;
    for_tiles(head.num_keys, [&](const KeyTile& tile) {
      const std::int64_t visible = on.visible(block, r, tile);
      float* weights = head.weight(block.first + r, tile.begin);
      std::copy_n(head.score(block.first + r, tile.begin), visible, weights);
      std::fill_n(weights + visible, tile.len - visible, 0.0F);
      if (visible > 0) {
        softmax.take(on.kernels, on.shape.scale, weights, visible);
      }
    });
    scratch.softmax[r] = softmax;
  }
}

// The rows of a strip take one tile's values; `seen` holds what each has seen before.
void take_values(const AttentionOperands& on, const RowBlock& strip, const HeadScores& head,
                 const KeyTile& tile, RunningSoftmax* seen, float* out,
                 const AttentionScratch& scratch) {
  const std::int64_t padded_dim = on.shape.padded_dim;
  std::int64_t visible[kStripRows];
  for (std::int64_t r = 0; r < strip.count; ++r) {
    visible[r] = on.visible(strip, r, tile);
    if (visible[r] > 0) {
      const float* scores = head.score(strip.first + r, tile.begin);
      const float shrink = seen[r].raise(on.kernels, on.shape.scale, scores, visible[r]);
      if (shrink != 1.0F) {
        on.kernels.multiply_by(out + r * padded_dim, padded_dim, shrink);
      }
      std::copy_n(head.weight(strip.first + r, tile.begin), visible[r],
                  scratch.logits + r * kRowStride);
    }
  }
  if (visible[strip.count - 1] > 0) {
    add_values(on, strip.count, visible, out, scratch);
  }
}

void sum_values(const AttentionOperands& on, const RowBlock& block, const HeadScores& head,
                const AttentionScratch& scratch) {
  RunningSoftmax seen[kMostBlockRows];
  std::fill_n(scratch.out, block.count * on.shape.padded_dim, 0.0F);
  for_tiles(head.num_keys, [&](const KeyTile& tile) {
    if (on.visible(block, block.count - 1, tile) == 0) {
      return;
    }
    pack_values(on, block, tile, scratch);
    for (std::int64_t first = 0; first < block.count; first += kStripRows) {
      const RowBlock strip{block.kv_head, block.first + first,
                           std::min(kStripRows, block.count - first)};
      take_values(on, strip, head, tile, seen + first, scratch.out + first * on.shape.padded_dim,
                  scratch);
    }
  });
}

// Row r of the mask sees its first `seen` keys.
template <typename Bits>
void fill_mask_row(std::byte* row, std::int64_t num_keys, std::int64_t seen, Bits masked) {
  Bits* const entries = reinterpret_cast<Bits*>(row);
  std::fill_n(entries, seen, Bits{0});
  std::fill_n(entries + seen, num_keys - seen, masked);
}

}  // namespace

void causal_mask(const Context& context, DeviceView mask) {
  constexpr std::uint32_t kMinusInfinity = 0xFF800000;  // of an f32; its upper half of a bf16
  const std::int64_t num_keys = mask.cols();
  for_row_pieces(context.pool, mask.rows(), num_keys,
                 [&](std::int64_t first, std::int64_t count, int) {
                   for (std::int64_t r = first; r < first + count; ++r) {
                     const std::int64_t seen = num_keys - mask.rows() + r + 1;
                     if (mask.dtype() == DType::kF32) {
                       fill_mask_row(address(mask, r), num_keys, seen, kMinusInfinity);
                     } else {
                       fill_mask_row(address(mask, r), num_keys, seen,
                                     static_cast<std::uint16_t>(kMinusInfinity >> 16));
                     }
                   }
                 });
}

void attend_with_whole_scores(const Context& context, DeviceView q, const KvView& kv,
                              const AttentionOptions& options) {
  const AttentionOperands on(context, q, kv, options.mask);
  for_row_blocks(context, on.shape, [&](const RowBlock& block, const AttentionScratch& scratch) {
    const HeadScores head = scores_of(on, block, options);
    score(on, block, head, scratch);
    soften(on, block, head, scratch);
    sum_values(on, block, head, scratch);
    store_lse(on, block, options.lse, scratch);
    store_output(on, block, scratch);
  });
}

}  // namespace tidekv::cpu
