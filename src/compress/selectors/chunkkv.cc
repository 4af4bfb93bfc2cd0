// ChunkKV: units of neighbouring tokens stay or go together, by the mean of SnapKV's scores without
// pooling over keys, the same in all KV heads.
#include "compress/selectors/selectors.h"
#include "compress/uniform_selector.h"

namespace tidekv {

std::unique_ptr<Selector> create_chunkkv_selector(const SelectorOptions& options) {
  ScoreRecipe recipe = snapkv_recipe(options);
  recipe.pool.kernel_len = 1;
  recipe.pool.heads = HeadScores::kMean;
  recipe.unit_len = options.unit_len;
  return uniform_selector(recipe, options.budget);
}

}  // namespace tidekv
