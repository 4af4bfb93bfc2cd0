#include "memory/formula.h"

#include <algorithm>

namespace tidekv {
namespace {

constexpr std::int64_t kFloatBytes = 4;    // f32 and i32
constexpr std::int64_t kIdsAtOnce = 4096;  // token ids on the device at a time

std::int64_t ceil_of_ratio(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t kv_bytes(const FormulaInput& in, std::int64_t rows) {
  return 2 * in.num_kv_heads * rows * in.head_dim * in.element_bytes;
}

// Held from the first byte to the last: weights, panels, RoPE frequencies, output row.
std::int64_t fixed_bytes(const FormulaInput& in) {
  return in.weights_bytes + in.panel_bytes + in.head_dim / 2 * kFloatBytes +
         in.hidden_dim * in.element_bytes + in.vocab_size * kFloatBytes;
}

// Act of one layer: `rows` normed, `query_rows` projected, `tile` in the MLP. Keys and values are
// born where they stay.
std::int64_t activation_bytes(const FormulaInput& in, std::int64_t rows, std::int64_t query_rows,
                              std::int64_t tile, std::int64_t mlp_buffers) {
  const std::int64_t elements = rows * in.hidden_dim + query_rows * in.num_q_heads * in.head_dim +
                                mlp_buffers * tile * in.ffn_dim;
  return elements * in.element_bytes + rows * in.head_dim * kFloatBytes;
}

// Keys that attention meets at once: of the longest head, and of all its heads.
struct Keys {
  std::int64_t longest_head = 0;
  std::int64_t total = 0;
};

// Mask and scores of `queries` of the chunk's `rows`.
std::int64_t held_bytes(const FormulaInput& in, std::int64_t rows, std::int64_t queries,
                        const Keys& keys) {
  const bool holds_mask = in.holds_scores || (in.masks && keys.longest_head > rows);
  const std::int64_t mask = holds_mask ? queries * keys.longest_head * in.element_bytes : 0;
  const std::int64_t group = in.num_q_heads / in.num_kv_heads;
  return mask + (in.holds_scores ? 2 * group * queries * keys.total * kFloatBytes : 0);
}

// Act while a chunk goes through layer `layer`, of whose last only one row may attend.
std::int64_t chunk_activation_bytes(const FormulaInput& in, std::int64_t layer, std::int64_t rows,
                                    const Keys& keys) {
  const bool last_row_only = layer == in.num_layers - 1 && !in.all_rows;
  const std::int64_t queries = last_row_only ? 1 : rows;
  const std::int64_t tile = std::min(queries, in.mlp_tile_len);
  const bool all_observed =
      in.expects_queries && in.layer_budgets[static_cast<std::size_t>(layer)] < in.prompt_len;
  return activation_bytes(in, rows, all_observed ? rows : queries, tile, in.mlp_buffers) +
         (in.stages_kv ? kv_bytes(in, rows) : 0) + held_bytes(in, rows, queries, keys);
}

// Rows of a head that come in all, where generated ones count in the budget.
std::int64_t counted_rows(const FormulaInput& in) {
  return in.prompt_len + (in.cuts_in_decode ? in.growth_len : 0);
}

// Generated rows of a head beside what it keeps of the prompt. Where they count in the budget, what
// the prompt leaves of it, and the one row that is over when the cut comes.
std::int64_t growth_rows(const FormulaInput& in, std::int64_t budget) {
  const std::int64_t left = std::max<std::int64_t>(0, budget - in.prompt_len);
  return in.cuts_in_decode ? std::min(in.growth_len, left + 1) : in.growth_len;
}

// What a finished layer holds whose tokens are codes but for the newest. Of `tokens` the first
// tokens - tokens mod R keys and all but the last R values are.
std::int64_t coded_bytes(const FormulaInput& in, std::int64_t tokens) {
  const std::int64_t keys = tokens / in.residual_len * in.residual_len;
  const std::int64_t values = tokens > in.residual_len ? tokens - in.residual_len : 0;
  const std::int64_t row_words = ceil_of_ratio(in.head_dim * in.code_bits, 32);
  const std::int64_t scales = (keys + values) * in.head_dim / in.code_group_len;
  return in.num_kv_heads *
         ((keys + values) * row_words * kFloatBytes + 2 * scales * in.element_bytes);
}

// The rows: one more than R, for the oldest turns into codes only when the newest has attended.
std::int64_t uncoded_bytes(const FormulaInput& in, std::int64_t tokens) {
  return kv_bytes(in, std::min(in.residual_len + 1, tokens));
}

// What a finished layer holds: retained rows, their positions, room for generated rows.
std::int64_t finished_layer_bytes(const FormulaInput& in, std::int64_t budget) {
  if (in.offloads) {
    return 0;  // in the pool
  }
  if (in.code_bits > 0) {
    const std::int64_t tokens = in.prompt_len + in.growth_len;
    return coded_bytes(in, tokens) + uncoded_bytes(in, tokens);
  }
  const std::int64_t kept = std::min(budget, in.prompt_len);
  const bool is_cut = budget < counted_rows(in);
  return kv_bytes(in, kept + growth_rows(in, budget)) +
         (is_cut ? in.num_kv_heads * budget * kFloatBytes : 0);
}

// Temp of choosing in units: averages of a block, and scores and ids of the best units.
std::int64_t unit_bytes(const FormulaInput& in, std::int64_t kept, std::int64_t candidates,
                        std::int64_t block) {
  const std::int64_t units =
      std::min(kept / in.unit_len + 2, ceil_of_ratio(candidates, in.unit_len));
  return in.num_kv_heads * (ceil_of_ratio(block, in.unit_len) + 2 * units) * kFloatBytes;
}

// Mean and covariance of every query head.
std::int64_t moments_bytes(const FormulaInput& in) {
  return in.num_q_heads * (in.head_dim + 1) * in.head_dim * kFloatBytes;
}

// A cut of one layer.
struct Cut {
  std::int64_t rows = 0;      // of a head, on average if heads differ
  std::int64_t queries = 0;   // that score
  bool heads_differ = false;  // scored one by one; one may have nearly all rows
};

// Temp of the cut of one layer: the best candidates, and of the heads scored together the
// log-sum-exp of pass 1 and one key block with its pooling halo, or the mean direction and a block.
std::int64_t scoring_bytes(const FormulaInput& in, std::int64_t budget, const Cut& cut) {
  const std::int64_t kept = budget - in.num_sinks - in.num_recent;
  const std::int64_t best = 2 * in.num_kv_heads * kept * kFloatBytes;
  if (kept == 0) {
    return best;
  }
  const std::int64_t end = cut.heads_differ ? in.num_kv_heads * cut.rows : cut.rows - in.num_recent;
  const std::int64_t candidates = cut.heads_differ ? end : end - in.num_sinks;
  const std::int64_t whole_units = ceil_of_ratio(in.key_block_len, in.unit_len) * in.unit_len;
  const std::int64_t block = std::min(whole_units, candidates);
  const std::int64_t heads = cut.heads_differ ? 1 : in.num_kv_heads;
  const std::int64_t q_heads = heads * (in.num_q_heads / in.num_kv_heads);
  const std::int64_t pooled_end = cut.heads_differ ? end : cut.rows - in.window_len;
  const std::int64_t scored = std::min(block + 2 * (in.kernel_len / 2), pooled_end);
  const std::int64_t lse = 2 * q_heads * cut.queries;
  const std::int64_t weights = q_heads * cut.queries * scored;
  const std::int64_t raw = cut.queries > 0 ? heads * scored : 0;
  const std::int64_t pooled = raw + heads * block;
  const std::int64_t anchors = in.key_directions ? heads * in.head_dim : 0;
  const std::int64_t counts = in.counts_heads ? in.num_kv_heads : 0;
  const std::int64_t units = in.unit_len > 1 ? unit_bytes(in, kept, candidates, block) : 0;
  const std::int64_t expected =
      in.expects_queries ? moments_bytes(in) + 2 * in.num_q_heads * kFloatBytes : 0;
  const std::int64_t own_queries =
      cut.heads_differ ? cut.queries * q_heads * in.head_dim * in.element_bytes : 0;
  return best + (lse + weights + pooled + anchors + counts) * kFloatBytes + units + own_queries +
         expected;
}

// What is kept of the queries while a layer is active: the window's, with what attention leaves of
// them where it runs for all rows; or moments of all.
std::int64_t queries_bytes(const FormulaInput& in, std::int64_t layer, std::int64_t window_len) {
  const bool last_row_only = layer == in.num_layers - 1 && !in.all_rows;
  const std::int64_t lse = last_row_only ? 0 : 2 * kFloatBytes;
  return window_len * in.num_q_heads * (in.head_dim * in.element_bytes + lse) +
         (in.expects_queries ? moments_bytes(in) : 0);
}

// The largest working set while layer `layer` is active, finished layers not counted.
std::int64_t active_layer_bytes(const FormulaInput& in, std::int64_t layer) {
  const std::int64_t budget = in.layer_budgets[static_cast<std::size_t>(layer)];
  const std::int64_t chunk = std::min(in.chunk_len, in.prompt_len);
  const std::int64_t act =
      chunk_activation_bytes(in, layer, chunk, {in.prompt_len, in.num_kv_heads * in.prompt_len});
  if (in.code_bits > 0) {
    return kv_bytes(in, in.prompt_len) + std::max(act, finished_layer_bytes(in, budget));
  }
  if (budget >= in.prompt_len) {
    return kv_bytes(in, in.prompt_len + in.growth_len) + act;
  }
  const std::int64_t full_kv = kv_bytes(in, in.prompt_len);
  const std::int64_t window = queries_bytes(in, layer, in.window_len);
  const std::int64_t positions = in.num_kv_heads * budget * kFloatBytes;
  const std::int64_t scoring =
      positions + scoring_bytes(in, budget, {in.prompt_len, in.window_len});
  const std::int64_t gathering = finished_layer_bytes(in, budget);
  return full_kv + window + std::max({act, scoring, gathering});
}

struct ChunkRange {
  std::int64_t begin = 0;
  std::int64_t len = 0;
};

// Chunk number `index` of `num_chunks`; the last has at least as many rows as there are queries
// that score, where chunks are that long.
ChunkRange chunk_at(const FormulaInput& in, std::int64_t index, std::int64_t num_chunks) {
  const std::int64_t begin = index * in.chunk_len;
  const std::int64_t last_begin = (num_chunks - 1) * in.chunk_len;
  const std::int64_t missing = num_chunks > 1 && in.window_len <= in.chunk_len
                                   ? in.window_len - (in.prompt_len - last_begin)
                                   : 0;
  const std::int64_t moved = std::max<std::int64_t>(0, missing);
  if (index == num_chunks - 1) {
    return {begin - moved, in.prompt_len - begin + moved};
  }
  return {begin, in.chunk_len - (index == num_chunks - 2 ? moved : 0)};
}

// The working set while a chunk goes through a layer, all caches not counted.
std::int64_t chunk_bytes(const FormulaInput& in, std::int64_t layer, const ChunkRange& chunk) {
  const std::int64_t budget = in.layer_budgets[static_cast<std::size_t>(layer)];
  const Cut cut{std::min(chunk.begin, budget) + chunk.len, std::min(in.window_len, chunk.len),
                in.heads_share && chunk.begin > budget};
  // From the offload pool one head comes up at a time.
  const std::int64_t total = (in.offloads ? 1 : in.num_kv_heads) * cut.rows;
  const std::int64_t act =
      chunk_activation_bytes(in, layer, chunk.len, {cut.heads_differ ? total : cut.rows, total});
  if (chunk.begin + chunk.len <= budget) {
    return act;
  }
  const std::int64_t window = queries_bytes(in, layer, cut.queries);
  const std::int64_t slots = in.num_kv_heads * budget * kFloatBytes;
  return kv_bytes(in, cut.rows) + window + std::max(act, slots + scoring_bytes(in, budget, cut));
}

// The largest over the chunks: the first, the last that is not cut, the first that is, one behind
// it, the last two.
std::int64_t largest_chunk_bytes(const FormulaInput& in, std::int64_t layer) {
  const std::int64_t budget = in.layer_budgets[static_cast<std::size_t>(layer)];
  const std::int64_t num_chunks = ceil_of_ratio(in.prompt_len, in.chunk_len);
  const std::int64_t first_cut = budget / in.chunk_len;
  std::int64_t largest = 0;
  for (const std::int64_t index :
       {std::int64_t{0}, first_cut - 1, first_cut, first_cut + 1, num_chunks - 2, num_chunks - 1}) {
    const std::int64_t inside = std::clamp<std::int64_t>(index, 0, num_chunks - 1);
    largest = std::max(largest, chunk_bytes(in, layer, chunk_at(in, inside, num_chunks)));
  }
  return largest;
}

// All the device ever holds of a cache in the pool: a chunk's new rows of every head, and two heads
// as long as they become.
std::int64_t ring_bytes(const FormulaInput& in) {
  if (!in.offloads) {
    return 0;
  }
  const std::int64_t two_heads = std::int64_t{4} * (in.prompt_len + in.growth_len) * in.head_dim;
  return kv_bytes(in, std::min(in.chunk_len, in.prompt_len)) + two_heads * in.element_bytes;
}

// The peak of the prefill beside what is held all along; sets what the finished layers hold.
std::int64_t prefill_bytes(const FormulaInput& in, std::int64_t& finished) {
  const std::int64_t rows = in.by_chunk ? std::min(in.chunk_len, in.prompt_len) : in.prompt_len;
  const std::int64_t hidden = rows * in.hidden_dim * in.element_bytes;
  std::int64_t peak = hidden + std::min(rows, kIdsAtOnce) * kFloatBytes;
  finished = 0;
  std::int64_t largest_chunk = 0;
  for (std::int64_t layer = 0; layer < in.num_layers; ++layer) {
    if (in.by_chunk) {
      largest_chunk = std::max(largest_chunk, largest_chunk_bytes(in, layer));
    } else {
      peak = std::max(peak, hidden + finished + active_layer_bytes(in, layer));
    }
    finished += finished_layer_bytes(in, in.layer_budgets[static_cast<std::size_t>(layer)]);
  }
  return in.by_chunk ? finished + std::max(peak, hidden + largest_chunk) : peak;
}

// The largest temp of a generated token: of a cut, where its row counts in the budget.
std::int64_t token_cut_bytes(const FormulaInput& in) {
  std::int64_t largest = 0;
  for (const std::int64_t budget : in.layer_budgets) {
    if (in.cuts_in_decode && budget < counted_rows(in)) {
      largest = std::max(largest, in.num_kv_heads * budget * kFloatBytes +
                                      scoring_bytes(in, budget, {budget + 1, 0}));
    }
  }
  return largest;
}

}  // namespace

std::int64_t closed_form_peak_bytes(const FormulaInput& in) {
  std::int64_t finished = 0;
  std::int64_t peak = prefill_bytes(in, finished);
  if (in.growth_len > 0) {  // decoding: one row, no bridge
    peak = std::max(peak, finished + activation_bytes(in, 1, 1, 1, 1) +
                              in.hidden_dim * in.element_bytes + kFloatBytes + token_cut_bytes(in));
  }
  return fixed_bytes(in) + ring_bytes(in) + peak;
}

std::int64_t closed_form_pool_bytes(const FormulaInput& in) {
  return in.offloads ? in.num_layers * kv_bytes(in, in.prompt_len + in.growth_len) : 0;
}

Eq9Terms eq9_terms(const FormulaInput& in) {
  Eq9Terms terms;
  const std::int64_t last_budget = in.layer_budgets[static_cast<std::size_t>(in.num_layers - 1)];
  const bool is_cut = last_budget < in.prompt_len;
  const std::int64_t chunk = std::min(in.chunk_len, in.prompt_len);
  const std::int64_t chunk_rows = is_cut ? std::min(in.prompt_len, last_budget + chunk) : 0;
  terms.active_kv_bytes = kv_bytes(in, in.by_chunk ? chunk_rows : in.prompt_len);
  terms.hidden_bytes = (in.by_chunk ? chunk : in.prompt_len) * in.hidden_dim * in.element_bytes;
  terms.activation_bytes = in.mlp_buffers * chunk * in.ffn_dim * in.element_bytes;
  if (in.offloads) {
    terms.active_kv_bytes = 2 * kv_bytes(in, in.prompt_len) / in.num_kv_heads;  // two heads
    return terms;
  }
  for (std::int64_t layer = 0; layer + (in.by_chunk ? 0 : 1) < in.num_layers; ++layer) {
    const std::int64_t budget = in.layer_budgets[static_cast<std::size_t>(layer)];
    terms.compact_bytes += in.code_bits > 0 ? coded_bytes(in, in.prompt_len)
                                            : kv_bytes(in, std::min(in.prompt_len, budget));
  }
  if (is_cut) {
    terms.temp_bytes =
        in.num_q_heads * (in.window_len * in.key_block_len + last_budget) * in.element_bytes;
  }
  return terms;
}

}  // namespace tidekv
