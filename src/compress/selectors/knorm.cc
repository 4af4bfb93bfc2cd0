// Knorm: short keys stay; queries have no say.
#include "compress/selectors/selectors.h"
#include "compress/uniform_selector.h"

namespace tidekv {

std::unique_ptr<Selector> create_knorm_selector(const SelectorOptions& options) {
  return uniform_selector(
      {.source = ScoreSource::kKeyNorm, .num_sinks = options.num_sinks, .pool = {}},
      options.budget);
}

}  // namespace tidekv
