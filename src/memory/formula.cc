#include "memory/formula.h"

#include <algorithm>

namespace tidekv {
namespace {

constexpr std::int64_t kFloatBytes = 4;    // f32 and i32
constexpr std::int64_t kIdsAtOnce = 4096;  // token ids on the device at a time

std::int64_t kv_bytes(const FormulaInput& in, std::int64_t rows) {
  return 2 * in.num_kv_heads * rows * in.head_dim * in.element_bytes;
}

// Held from the first byte to the last: weights, panels, RoPE frequencies, output row.
std::int64_t fixed_bytes(const FormulaInput& in) {
  return in.weights_bytes + in.panel_bytes + in.head_dim / 2 * kFloatBytes +
         in.hidden_dim * in.element_bytes + in.vocab_size * kFloatBytes;
}

// Act of one layer: `rows` normed and projected, `query_rows` attending, `tile` in the MLP.
std::int64_t activation_bytes(const FormulaInput& in, std::int64_t rows, std::int64_t query_rows,
                              std::int64_t tile, std::int64_t mlp_buffers) {
  const std::int64_t elements = rows * (in.hidden_dim + 2 * in.num_kv_heads * in.head_dim) +
                                query_rows * in.num_q_heads * in.head_dim +
                                mlp_buffers * tile * in.ffn_dim;
  return elements * in.element_bytes + rows * in.head_dim * kFloatBytes;
}

// What a finished layer holds: retained rows, their positions, room for generated rows.
std::int64_t finished_layer_bytes(const FormulaInput& in, std::int64_t budget) {
  if (budget >= in.prompt_len) {
    return kv_bytes(in, in.prompt_len + in.growth_len);
  }
  return kv_bytes(in, budget + in.growth_len) + in.num_kv_heads * budget * kFloatBytes;
}

std::int64_t ceil_of_ratio(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Temp of choosing in units: averages of a block, and scores and ids of the best units.
std::int64_t unit_bytes(const FormulaInput& in, std::int64_t kept, std::int64_t candidates,
                        std::int64_t block) {
  const std::int64_t units =
      std::min(kept / in.unit_len + 2, ceil_of_ratio(candidates, in.unit_len));
  return in.num_kv_heads * (ceil_of_ratio(block, in.unit_len) + 2 * units) * kFloatBytes;
}

// Temp of the cut of one layer: the best candidates, the log-sum-exp of pass 1, and one key block
// with its pooling halo.
std::int64_t scoring_bytes(const FormulaInput& in, std::int64_t budget) {
  const std::int64_t kept = budget - in.num_sinks - in.num_recent;
  const std::int64_t best = 2 * in.num_kv_heads * kept * kFloatBytes;
  if (kept == 0) {
    return best;
  }
  const std::int64_t end = in.prompt_len - in.num_recent;
  const std::int64_t candidates = end - in.num_sinks;
  const std::int64_t whole_units = ceil_of_ratio(in.key_block_len, in.unit_len) * in.unit_len;
  const std::int64_t block = std::min(whole_units, candidates);
  const std::int64_t scored = std::min(block + 2 * (in.kernel_len / 2), end);
  const std::int64_t lse = 2 * in.num_q_heads * in.window_len;
  const std::int64_t weights = in.num_q_heads * in.window_len * scored;
  const std::int64_t raw = in.window_len > 0 ? in.num_kv_heads * scored : 0;
  const std::int64_t pooled = raw + in.num_kv_heads * block;
  const std::int64_t counts = in.counts_heads ? in.num_kv_heads : 0;
  const std::int64_t units = in.unit_len > 1 ? unit_bytes(in, kept, candidates, block) : 0;
  return best + (lse + weights + pooled + counts) * kFloatBytes + units;
}

// The largest working set while layer `layer` is active, finished layers not counted.
std::int64_t active_layer_bytes(const FormulaInput& in, std::int64_t layer) {
  const std::int64_t budget = in.layer_budgets[static_cast<std::size_t>(layer)];
  const bool last_row_only = layer == in.num_layers - 1 && !in.all_rows;
  const std::int64_t chunk = std::min(in.chunk_len, in.prompt_len);
  const std::int64_t queries = last_row_only ? 1 : chunk;
  const std::int64_t act =
      activation_bytes(in, chunk, queries, std::min(queries, in.mlp_tile_len), in.mlp_buffers);
  if (budget >= in.prompt_len) {
    return kv_bytes(in, in.prompt_len + in.growth_len) + act;
  }
  const std::int64_t full_kv = kv_bytes(in, in.prompt_len);
  const std::int64_t window = in.window_len * in.num_q_heads * in.head_dim * in.element_bytes;
  const std::int64_t positions = in.num_kv_heads * budget * kFloatBytes;
  const std::int64_t scoring = positions + scoring_bytes(in, budget);
  const std::int64_t gathering = finished_layer_bytes(in, budget);
  return full_kv + window + std::max({act, scoring, gathering});
}

}  // namespace

std::int64_t closed_form_peak_bytes(const FormulaInput& in) {
  const std::int64_t hidden = in.prompt_len * in.hidden_dim * in.element_bytes;
  std::int64_t peak = hidden + std::min(in.prompt_len, kIdsAtOnce) * kFloatBytes;
  std::int64_t finished = 0;
  for (std::int64_t layer = 0; layer < in.num_layers; ++layer) {
    peak = std::max(peak, hidden + finished + active_layer_bytes(in, layer));
    finished += finished_layer_bytes(in, in.layer_budgets[static_cast<std::size_t>(layer)]);
  }
  if (in.growth_len > 0) {  // decoding: one row, no bridge
    peak = std::max(peak, finished + activation_bytes(in, 1, 1, 1, 2) +
                              in.hidden_dim * in.element_bytes + kFloatBytes);
  }
  return fixed_bytes(in) + peak;
}

Eq9Terms eq9_terms(const FormulaInput& in) {
  Eq9Terms terms;
  terms.active_kv_bytes = kv_bytes(in, in.prompt_len);
  terms.hidden_bytes = in.prompt_len * in.hidden_dim * in.element_bytes;
  terms.activation_bytes =
      in.mlp_buffers * std::min(in.chunk_len, in.prompt_len) * in.ffn_dim * in.element_bytes;
  for (std::int64_t layer = 0; layer + 1 < in.num_layers; ++layer) {
    terms.compact_bytes +=
        kv_bytes(in, std::min(in.prompt_len, in.layer_budgets[static_cast<std::size_t>(layer)]));
  }
  const std::int64_t last_budget = in.layer_budgets[static_cast<std::size_t>(in.num_layers - 1)];
  if (last_budget < in.prompt_len) {
    terms.temp_bytes =
        in.num_q_heads * (in.window_len * in.key_block_len + last_budget) * in.element_bytes;
  }
  return terms;
}

}  // namespace tidekv
