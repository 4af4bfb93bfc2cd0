// Ada-KV: SnapKV's scores; a layer's budget goes to the KV heads that have the best candidates, but
// for a share that all get alike. Caches of heads have lengths of their own then.
#include "compress/selectors/selectors.h"
#include "compress/uniform_selector.h"

namespace tidekv {

std::unique_ptr<Selector> create_adakv_selector(const SelectorOptions& options) {
  ScoreRecipe recipe = snapkv_recipe(options);
  recipe.even_share = options.even_share;
  recipe.even_share_is_floor = options.rule == BudgetRule::kKvpress;
  return uniform_selector(recipe, options.budget);
}

}  // namespace tidekv
