// SnapKV: attention of the last W prompt tokens, summed over the window, reduced over the query
// heads of a KV head, pooled over neighbouring keys; the window itself is always kept.
#include "compress/selectors/selectors.h"
#include "compress/uniform_selector.h"

namespace tidekv {

ScoreRecipe snapkv_recipe(const SelectorOptions& options) {
  return {.source = ScoreSource::kWindowAttention,
          .window_len = options.window_len,
          .num_sinks = options.num_sinks,
          .num_recent = options.window_len,
          .pool = options.pool};
}

std::unique_ptr<Selector> create_snapkv_selector(const SelectorOptions& options) {
  return uniform_selector(snapkv_recipe(options), options.budget);
}

}  // namespace tidekv
