// SnapKV: attention of the last W prompt tokens, summed over the window, reduced over the query
// heads of a KV head, pooled over neighbouring keys; the window itself is always kept.
#include <algorithm>

#include "compress/selectors/selectors.h"

namespace tidekv {
namespace {

class SnapKvSelector final : public Selector {
 public:
  explicit SnapKvSelector(const SelectorOptions& options) : options_(options) {}

  ScoreRecipe score_recipe() const override { return snapkv_recipe(options_); }

  void layer_budgets(std::int64_t /*prompt_len*/, std::span<std::int64_t> budgets) const override {
    std::fill(budgets.begin(), budgets.end(), options_.budget);
  }

 private:
  SelectorOptions options_;
};

}  // namespace

ScoreRecipe snapkv_recipe(const SelectorOptions& options) {
  return {.source = ScoreSource::kWindowAttention,
          .window_len = options.window_len,
          .num_sinks = options.num_sinks,
          .num_recent = options.window_len,
          .pool = options.pool};
}

std::unique_ptr<Selector> create_snapkv_selector(const SelectorOptions& options) {
  return std::make_unique<SnapKvSelector>(options);
}

}  // namespace tidekv
