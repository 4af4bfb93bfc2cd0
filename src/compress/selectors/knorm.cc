// Knorm: short keys stay; queries have no say.
#include <algorithm>

#include "compress/selectors/selectors.h"

namespace tidekv {
namespace {

class KnormSelector final : public Selector {
 public:
  explicit KnormSelector(const SelectorOptions& options) : options_(options) {}

  ScoreRecipe score_recipe() const override {
    return {.source = ScoreSource::kKeyNorm, .num_sinks = options_.num_sinks, .pool = {}};
  }

  void layer_budgets(std::int64_t /*prompt_len*/, std::span<std::int64_t> budgets) const override {
    std::fill(budgets.begin(), budgets.end(), options_.budget);
  }

 private:
  SelectorOptions options_;
};

}  // namespace

std::unique_ptr<Selector> create_knorm_selector(const SelectorOptions& options) {
  return std::make_unique<KnormSelector>(options);
}

}  // namespace tidekv
