// ChunkKV: units of neighbouring tokens stay or go together, by the mean of SnapKV's scores without
// pooling over keys, the same in all KV heads.
#include <algorithm>

#include "compress/selectors/selectors.h"

namespace tidekv {
namespace {

class ChunkKvSelector final : public Selector {
 public:
  explicit ChunkKvSelector(const SelectorOptions& options) : options_(options) {}

  ScoreRecipe score_recipe() const override {
    ScoreRecipe recipe = snapkv_recipe(options_);
    recipe.pool.kernel_len = 1;
    recipe.pool.heads = HeadScores::kMean;
    recipe.unit_len = options_.unit_len;
    return recipe;
  }

  void layer_budgets(std::int64_t /*prompt_len*/, std::span<std::int64_t> budgets) const override {
    std::fill(budgets.begin(), budgets.end(), options_.budget);
  }

 private:
  SelectorOptions options_;
};

}  // namespace

std::unique_ptr<Selector> create_chunkkv_selector(const SelectorOptions& options) {
  return std::make_unique<ChunkKvSelector>(options);
}

}  // namespace tidekv
