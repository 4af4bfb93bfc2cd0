// Layer-major chunked prefill with delayed eviction: Alg. 1, Fig. 1(d).
//
// Invariant: at every instant at most one layer holds full-prompt KV, at most one chunk holds
// activations, and finished layers hold only what they retained.
#include <algorithm>
#include <utility>

#include "prefill/schedule.h"

namespace tidekv {
namespace {

Status run_chunks(PrefillContext& context, std::int64_t layer, ActiveLayer& active) {
  TIDEKV_ASSIGN(LayerWorkspace workspace, context.open_workspace(layer, context.chunk_len(),
                                                                 PrefillContext::Buffers::kTiled));
  for (std::int64_t begin = 0; begin < context.prompt_len(); begin += context.chunk_len()) {
    const Chunk chunk{begin, std::min(context.chunk_len(), context.prompt_len() - begin)};
    TIDEKV_TRY(context.forward_chunk(layer, chunk, active, workspace));  // overwrites its slot
  }
  return Ok{};
}

}  // namespace

Status run_layer_major(PrefillContext& context) {
  for (std::int64_t layer = 0; layer < context.num_layers(); ++layer) {
    TIDEKV_ASSIGN(ActiveLayer active, context.open_layer(layer));
    TIDEKV_TRY(run_chunks(context, layer, active));
    // Sees the whole prompt; the full KV dies inside: delayed eviction.
    TIDEKV_TRY(context.compress_and_commit(layer, std::move(active), context.key_block_len()));
  }
  return Ok{};
}

}  // namespace tidekv
