// Expected Attention: a key stays that queries still to come may be expected to look at, as those
// of the prompt did, and whose value is long.
#include "compress/selectors/selectors.h"
#include "compress/uniform_selector.h"

namespace tidekv {

std::unique_ptr<Selector> create_expected_attention_selector(const SelectorOptions& options) {
  return uniform_selector(
      {.source = ScoreSource::kExpectedAttention, .num_sinks = options.num_sinks, .pool = {}},
      options.budget);
}

}  // namespace tidekv
