// The whole prompt through each layer at once, then the cut: Fig. 1(a) as post-prefill selectors
// run it, and the full-cache reference. The MLP is not tiled, keys and values are copied into the
// cache, and scoring is dense, as frameworks do.
#include <utility>

#include "prefill/schedule.h"

namespace tidekv {
namespace {

Status run_prompt(PrefillContext& context, std::int64_t layer, ActiveLayer& active) {
  TIDEKV_ASSIGN(
      LayerWorkspace workspace,
      context.open_workspace(layer, context.prompt_len(), PrefillContext::Buffers::kAsFramework));
  return context.forward_chunk(layer, {0, context.prompt_len()}, active, workspace);
}

}  // namespace

Status run_one_shot(PrefillContext& context) {
  for (std::int64_t layer = 0; layer < context.num_layers(); ++layer) {
    TIDEKV_ASSIGN(ActiveLayer active, context.open_layer(layer));
    TIDEKV_TRY(run_prompt(context, layer, active));
    TIDEKV_TRY(context.compress_and_commit(layer, std::move(active), context.prompt_len()));
  }
  return Ok{};
}

}  // namespace tidekv
