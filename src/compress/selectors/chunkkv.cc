// ChunkKV: units of neighbouring tokens stay or go together, by the mean of SnapKV's scores without
// pooling over keys, the same in all KV heads.
#include <algorithm>

#include "base/checked_math.h"
#include "compress/selectors/selectors.h"

namespace tidekv {
namespace {

class ChunkKvSelector final : public Selector {
 public:
  explicit ChunkKvSelector(const SelectorOptions& options) : options_(options) {}

  ScoreRecipe score_recipe(std::int64_t prompt_len) const override {
    ScoreRecipe recipe = snapkv_recipe(options_);
    recipe.pool.heads = HeadScores::kMean;
    recipe.unit_len = options_.unit_len;
    if (as_kvpress()) {
      recipe.num_recent = window_units(prompt_len);
    } else {
      recipe.pool.kernel_len = 1;
    }
    return recipe;
  }

  void layer_budgets(std::int64_t prompt_len, std::span<std::int64_t> budgets) const override {
    const bool in_units = as_kvpress() && options_.budget < prompt_len;
    std::fill(budgets.begin(), budgets.end(), in_units ? whole_units(prompt_len) : options_.budget);
  }

 private:
  // kvpress pools, counts units from the prompt's first token to its last, keeps those that the
  // window reaches into, and then as many whole ones as the budget is of the prompt.
  bool as_kvpress() const { return options_.rule == BudgetRule::kKvpress; }

  // Tokens of the units that the window reaches into.
  std::int64_t window_units(std::int64_t prompt_len) const {
    const std::int64_t before = std::max<std::int64_t>(0, prompt_len - options_.window_len);
    return std::max(options_.window_len,
                    prompt_len - before / options_.unit_len * options_.unit_len);
  }

  std::int64_t whole_units(std::int64_t prompt_len) const {
    const std::int64_t recent = window_units(prompt_len);
    const std::int64_t wanted =
        ceil_div(prompt_len, options_.unit_len) * options_.budget / prompt_len;
    const std::int64_t more =
        std::max<std::int64_t>(0, wanted - ceil_div(recent, options_.unit_len));
    return std::max(recent + more * options_.unit_len, options_.num_sinks + recent);
  }

  SelectorOptions options_;
};

}  // namespace

std::unique_ptr<Selector> create_chunkkv_selector(const SelectorOptions& options) {
  return std::make_unique<ChunkKvSelector>(options);
}

}  // namespace tidekv
