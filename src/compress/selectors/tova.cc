// TOVA: attention of the last query, averaged over all query heads; all KV heads retain the same
// tokens, the last one always among them.
#include <algorithm>

#include "compress/selectors/selectors.h"

namespace tidekv {
namespace {

class TovaSelector final : public Selector {
 public:
  explicit TovaSelector(const SelectorOptions& options) : options_(options) {}

  ScoreRecipe score_recipe() const override {
    return {.source = ScoreSource::kWindowAttention,
            .window_len = 1,
            .num_sinks = options_.num_sinks,
            .num_recent = 1,
            .pool = {.kernel_len = 1, .heads = HeadScores::kMean}};
  }

  void layer_budgets(std::int64_t /*prompt_len*/, std::span<std::int64_t> budgets) const override {
    std::fill(budgets.begin(), budgets.end(), options_.budget);
  }

 private:
  SelectorOptions options_;
};

}  // namespace

std::unique_ptr<Selector> create_tova_selector(const SelectorOptions& options) {
  return std::make_unique<TovaSelector>(options);
}

}  // namespace tidekv
