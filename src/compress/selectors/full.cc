// Full: keeps every token, whatever the budget says.
#include <algorithm>

#include "compress/selectors/selectors.h"

namespace tidekv {
namespace {

class FullSelector final : public Selector {
 public:
  ScoreRecipe score_recipe(std::int64_t /*prompt_len*/) const override { return {}; }

  void layer_budgets(std::int64_t prompt_len, std::span<std::int64_t> budgets) const override {
    std::fill(budgets.begin(), budgets.end(), prompt_len);
  }
};

}  // namespace

std::unique_ptr<Selector> create_full_selector(const SelectorOptions& /*options*/) {
  return std::make_unique<FullSelector>();
}

}  // namespace tidekv
