#include "compress/uniform_selector.h"

#include <algorithm>

namespace tidekv {
namespace {

class UniformSelector final : public Selector {
 public:
  UniformSelector(const ScoreRecipe& recipe, std::int64_t budget)
      : recipe_(recipe), budget_(budget) {}

  ScoreRecipe score_recipe(std::int64_t /*prompt_len*/) const override { return recipe_; }

  void layer_budgets(std::int64_t /*prompt_len*/, std::span<std::int64_t> budgets) const override {
    std::fill(budgets.begin(), budgets.end(), budget_);
  }

 private:
  ScoreRecipe recipe_;
  std::int64_t budget_;
};

}  // namespace

std::unique_ptr<Selector> uniform_selector(const ScoreRecipe& recipe, std::int64_t budget) {
  return std::make_unique<UniformSelector>(recipe, budget);
}

}  // namespace tidekv
