// The peak in closed form: the ledger's check, and Eq. (9) of the paper beside it.
//
// Written from the paper and from what each buffer must hold, not from the code that allocates;
// a test holds the two against each other, to the byte.
#pragma once

#include <cstdint>
#include <span>

namespace tidekv {

// A request in numbers. For the whole-prompt control chunk_len and key_block_len are prompt_len,
// and mlp_tile_len too unless it was asked for, mlp_buffers is 3 and keys and values are staged.
struct FormulaInput {
  std::int64_t num_layers = 0;
  std::int64_t hidden_dim = 0;
  std::int64_t ffn_dim = 0;
  std::int64_t num_q_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab_size = 0;
  std::int64_t element_bytes = 2;  // b
  std::int64_t weights_bytes = 0;
  std::int64_t panel_bytes = 0;    // kernel scratch of all threads
  std::int64_t prompt_len = 0;     // S
  std::int64_t chunk_len = 0;      // C
  std::int64_t mlp_tile_len = 0;   // rows inside the MLP at once
  std::int64_t mlp_buffers = 1;    // c: co-resident buffers of width d_ff
  bool stages_kv = false;          // keys and values of a chunk exist beside the cache
  std::int64_t key_block_len = 0;  // b_s
  std::int64_t window_len = 0;     // W: queries that score; 0: keys are scored by themselves
  std::int64_t num_sinks = 0;      // always retained, no candidates
  std::int64_t num_recent = 0;     // the same, at the end
  std::int64_t kernel_len = 1;
  std::int64_t unit_len = 1;    // candidates that stay or go together
  bool heads_share = false;     // cuts leave heads of unequal length
  bool counts_heads = false;    // a layer's budget is split by what the heads' candidates score
  std::int64_t growth_len = 0;  // generated rows per head
  bool all_rows = false;
  bool masks = false;         // attention holds the mask of a chunk with keys before it
  bool holds_scores = false;  // and that of every chunk, all scores, and what softmax makes of them
  bool by_chunk = false;  // each chunk through all layers, whose caches are there from the start
  bool cuts_in_decode = false;      // generated rows count in the budget
  std::int64_t code_bits = 0;       // KIVI: of an element of the cache; 0: rows stay as they are
  std::int64_t code_group_len = 0;  // g: elements that share scale and minimum
  std::int64_t residual_len = 0;    // R: newest tokens that stay rows
  bool expects_queries = false;     // scores come from the moments of all queries
  bool offloads = false;  // HeadInfer: all caches in the offload pool, two KV heads at a time up
  bool key_directions = false;  // keys are scored by their directions, without queries
  std::span<const std::int64_t> layer_budgets;  // K_l, [num_layers]
};

// Largest live bytes over the request, weights included.
std::int64_t closed_form_peak_bytes(const FormulaInput& in);

// What the offload pool holds; 0 where there is none.
std::int64_t closed_form_pool_bytes(const FormulaInput& in);

// Eq. (9) at its largest layer, as printed in the paper: no tiles, no metadata, no weights. By
// chunk: the same terms at the last layer, which holds a chunk over its budget while all caches
// live.
struct Eq9Terms {
  std::int64_t active_kv_bytes = 0;   // 2 H_kv S D b
  std::int64_t hidden_bytes = 0;      // S d_model b
  std::int64_t activation_bytes = 0;  // c C d_ff b
  std::int64_t compact_bytes = 0;     // sum of 2 H_kv K_l' D b over l' < l = N
  std::int64_t temp_bytes = 0;        // H_q (W b_s + K_l) b
  std::int64_t total() const {
    return active_kv_bytes + hidden_bytes + activation_bytes + compact_bytes + temp_bytes;
  }
};
Eq9Terms eq9_terms(const FormulaInput& in);

}  // namespace tidekv
