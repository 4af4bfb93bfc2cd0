// Most selectors: one recipe, and the same budget in every layer.
#pragma once

#include <memory>

#include "compress/selector.h"

namespace tidekv {

// `budget` tokens per KV head in every layer, chosen by `recipe`.
std::unique_ptr<Selector> uniform_selector(const ScoreRecipe& recipe, std::int64_t budget);

}  // namespace tidekv
