// Sinks and recent tokens (StreamingLLM's choice): nothing is scored.
#include <algorithm>

#include "compress/selectors/selectors.h"
#include "compress/uniform_selector.h"

namespace tidekv {

std::unique_ptr<Selector> create_recent_selector(const SelectorOptions& options) {
  const ScoreRecipe recipe = {
      .source = ScoreSource::kNothing,
      .num_sinks = options.num_sinks,
      .num_recent = std::max<std::int64_t>(1, options.budget - options.num_sinks),
      .pool = {}};
  return uniform_selector(recipe, options.budget);
}

}  // namespace tidekv
