// Ada-KV: SnapKV's scores; a layer's budget goes to the KV heads that have the best candidates, but
// for a share that all get alike. Caches of heads have lengths of their own then.
#include <algorithm>

#include "compress/selectors/selectors.h"

namespace tidekv {
namespace {

class AdaKvSelector final : public Selector {
 public:
  explicit AdaKvSelector(const SelectorOptions& options) : options_(options) {}

  ScoreRecipe score_recipe() const override {
    ScoreRecipe recipe = snapkv_recipe(options_);
    recipe.even_share = options_.even_share;
    recipe.even_share_is_floor = options_.rule == BudgetRule::kKvpress;
    return recipe;
  }

  void layer_budgets(std::int64_t /*prompt_len*/, std::span<std::int64_t> budgets) const override {
    std::fill(budgets.begin(), budgets.end(), options_.budget);
  }

 private:
  SelectorOptions options_;
};

}  // namespace

std::unique_ptr<Selector> create_adakv_selector(const SelectorOptions& options) {
  return std::make_unique<AdaKvSelector>(options);
}

}  // namespace tidekv
