// KeyDiff's scores: a key stays that points elsewhere than the mean of all keys' directions does.
// No query is asked, so no token is kept for its place: neither sinks, unless asked for, nor recent
// ones.
#include "compress/selectors/selectors.h"
#include "compress/uniform_selector.h"

namespace tidekv {

std::unique_ptr<Selector> create_key_difference_selector(const SelectorOptions& options) {
  return uniform_selector(
      {.source = ScoreSource::kKeyDifference, .num_sinks = options.num_sinks, .pool = {}},
      options.budget);
}

}  // namespace tidekv
