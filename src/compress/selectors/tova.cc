// TOVA: attention of the last query, averaged over all query heads; all KV heads retain the same
// tokens, the last one always among them.
#include "compress/selectors/selectors.h"
#include "compress/uniform_selector.h"

namespace tidekv {

std::unique_ptr<Selector> create_tova_selector(const SelectorOptions& options) {
  const ScoreRecipe recipe = {.source = ScoreSource::kWindowAttention,
                              .window_len = 1,
                              .num_sinks = options.num_sinks,
                              .num_recent = 1,
                              .pool = {.kernel_len = 1, .heads = HeadScores::kMean}};
  return uniform_selector(recipe, options.budget);
}

}  // namespace tidekv
