// Methods and budgets, as the flags of `sweep` and `bench fidelity` cross them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tidekv/sweep.h"

namespace tidekv::cli {

// Every method with every budget; those that keep everything once, with the default one.
std::vector<SweepTarget> crossed(const std::vector<std::string>& methods,
                                 const std::vector<std::int64_t>& budgets);

// 0 for what keeps everything, whatever the budget.
std::int64_t shown_budget(const SweepTarget& target);

}  // namespace tidekv::cli
