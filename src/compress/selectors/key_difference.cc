// KeyDiff's scores: a key stays that points elsewhere than the mean of all keys' directions does.
// No query is asked, so no token is kept for its place: neither sinks, unless asked for, nor recent
// ones.
#include <algorithm>

#include "compress/selectors/selectors.h"

namespace tidekv {
namespace {

class KeyDifferenceSelector final : public Selector {
 public:
  explicit KeyDifferenceSelector(const SelectorOptions& options) : options_(options) {}

  ScoreRecipe score_recipe() const override {
    return {.source = ScoreSource::kKeyDifference, .num_sinks = options_.num_sinks, .pool = {}};
  }

  void layer_budgets(std::int64_t /*prompt_len*/, std::span<std::int64_t> budgets) const override {
    std::fill(budgets.begin(), budgets.end(), options_.budget);
  }

 private:
  SelectorOptions options_;
};

}  // namespace

std::unique_ptr<Selector> create_key_difference_selector(const SelectorOptions& options) {
  return std::make_unique<KeyDifferenceSelector>(options);
}

}  // namespace tidekv
