// PyramidKV: SnapKV's scores; early layers keep more than late ones.
#include "compress/layer_budgets.h"
#include "compress/selectors/selectors.h"

namespace tidekv {
namespace {

class PyramidKvSelector final : public Selector {
 public:
  explicit PyramidKvSelector(const SelectorOptions& options) : options_(options) {}

  ScoreRecipe score_recipe(std::int64_t /*prompt_len*/) const override {
    return snapkv_recipe(options_);
  }

  void layer_budgets(std::int64_t prompt_len, std::span<std::int64_t> budgets) const override {
    pyramid_budgets({.prompt_len = prompt_len,
                     .budget = options_.budget,
                     .num_mandatory = snapkv_recipe(options_).num_mandatory(),
                     .steepness = options_.steepness,
                     .rule = options_.rule},
                    budgets);
  }

 private:
  SelectorOptions options_;
};

}  // namespace

std::unique_ptr<Selector> create_pyramidkv_selector(const SelectorOptions& options) {
  return std::make_unique<PyramidKvSelector>(options);
}

}  // namespace tidekv
