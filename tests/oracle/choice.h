// Which positions stay, given the scores: by sorting everything, in the words of the papers. The
// ground truth for heaps, shared lists and units; it takes the floats that were computed, so it
// must agree exactly.
#pragma once

#include <cstdint>
#include <vector>

#include "compress/selector.h"

namespace tidekv::oracle {

// scores [kv_heads][prompt_len - num_recent]; those of sinks are not looked at. Returns, ascending,
// what each head keeps of a budget of `layer_budget` tokens per head; budget < prompt_len.
std::vector<std::vector<std::int32_t>> choose_positions(
    const std::vector<std::vector<float>>& scores, const ScoreRecipe& recipe,
    std::int64_t layer_budget, std::int64_t prompt_len);

}  // namespace tidekv::oracle
