// How a prompt's budget is split over layers (PyramidKV).
#pragma once

#include <cstdint>
#include <span>

#include "compress/selector.h"

namespace tidekv {

struct PyramidShape {
  std::int64_t prompt_len = 0;
  std::int64_t budget = 0;         // K: tokens per KV head, on average over the layers
  std::int64_t num_mandatory = 0;  // of every layer, inside its budget
  std::int64_t steepness = 20;     // beta: the last layer keeps about 1 / beta of the average
  BudgetRule rule = BudgetRule::kExact;
};

// Fills budgets [num_layers] with tokens per KV head: a straight line from the first layer to the
// last, mandatory tokens aside, rounded so that the sum is num_layers * K: what rounding down
// leaves goes to the largest remainders, of equal ones to the lower layer. Every layer the same
// where the prompt has fewer than twice the average's candidates, for then a line would not save
// anything; the whole prompt where the budget covers it. Under another rule the budgets are those
// of that program, and may add up to something else.
void pyramid_budgets(const PyramidShape& shape, std::span<std::int64_t> budgets);

}  // namespace tidekv
