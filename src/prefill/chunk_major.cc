// Each chunk through all layers: Fig. 1(b), and 1(c) where a layer's budget does not hold all of
// it. Then the layer is cut as soon as the chunk has run, and later chunks see what is left.
//
// Invariant: between two layers every cache is within its budget, and at most one layer holds a
// chunk beside what its cache holds.
#include <algorithm>

#include "prefill/schedule.h"

namespace tidekv {
namespace {

// The last cut decides what stays, so the last chunk has a whole window of queries, where chunks
// are that long: the one before leaves it the rows it lacks.
std::int64_t length_of_next(std::int64_t rest, std::int64_t chunk_len, std::int64_t window_len) {
  if (rest <= chunk_len) {
    return rest;
  }
  const bool leaves_too_few = rest - chunk_len < window_len && window_len <= chunk_len;
  return leaves_too_few ? rest - window_len : chunk_len;
}

Status append(PrefillContext& context, std::int64_t layer, const Chunk& chunk) {
  TIDEKV_ASSIGN(LayerWorkspace workspace,
                context.open_workspace(layer, chunk.len, PrefillContext::Buffers::kTiled));
  return context.append_chunk(layer, chunk, workspace);
}

Status forward_over_cache(PrefillContext& context, std::int64_t layer, const Chunk& chunk,
                          ActiveLayer& active) {
  TIDEKV_ASSIGN(LayerWorkspace workspace,
                context.open_workspace(layer, chunk.len, PrefillContext::Buffers::kTiled));
  return context.forward_chunk(layer, chunk, active, workspace);
}

Status run_layer(PrefillContext& context, std::int64_t layer, const Chunk& chunk) {
  if (context.has_room(layer, chunk)) {
    return append(context, layer, chunk);
  }
  TIDEKV_ASSIGN(ActiveLayer active, context.open_over_cache(layer, chunk));
  TIDEKV_TRY(forward_over_cache(context, layer, chunk, active));
  return context.cut_cache(layer, active, chunk);  // at once: immediate eviction
}

}  // namespace

Status run_chunk_major(PrefillContext& context) {
  TIDEKV_TRY(context.open_caches());
  Chunk chunk;
  for (std::int64_t begin = 0; begin < context.prompt_len(); begin += chunk.len) {
    chunk = {begin, length_of_next(context.prompt_len() - begin, context.chunk_len(),
                                   context.window_len())};
    TIDEKV_TRY(context.embed(chunk));
    for (std::int64_t layer = 0; layer < context.num_layers(); ++layer) {
      TIDEKV_TRY(run_layer(context, layer, chunk));
    }
  }
  return Ok{};
}

}  // namespace tidekv
