// Sinks and recent tokens (StreamingLLM's choice): nothing is scored.
#include <algorithm>

#include "compress/selectors/selectors.h"

namespace tidekv {
namespace {

class RecentSelector final : public Selector {
 public:
  explicit RecentSelector(const SelectorOptions& options) : options_(options) {}

  ScoreRecipe score_recipe() const override {
    return {.source = ScoreSource::kNothing,
            .num_sinks = options_.num_sinks,
            .num_recent = std::max<std::int64_t>(1, options_.budget - options_.num_sinks),
            .pool = {}};
  }

  void layer_budgets(std::int64_t /*prompt_len*/, std::span<std::int64_t> budgets) const override {
    std::fill(budgets.begin(), budgets.end(), options_.budget);
  }

 private:
  SelectorOptions options_;
};

}  // namespace

std::unique_ptr<Selector> create_recent_selector(const SelectorOptions& options) {
  return std::make_unique<RecentSelector>(options);
}

}  // namespace tidekv
