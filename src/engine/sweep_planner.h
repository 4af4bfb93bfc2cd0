// Plans a sweep like any request, by walking its real schedule on the dry-run backend.
#pragma once

#include <span>
#include <vector>

#include "engine/planner.h"
#include "tidekv/sweep.h"

namespace tidekv {

struct PlannedSweep {
  ResolvedRequest request;  // layer-major, with every cache
  MemoryPlan memory;
  SweepPlan report;
};

// Checks every target as a request of its own, and, if it is not the only one, that its method
// chooses at a layer's end. Errors name the flag or the method.
Result<PlannedSweep> plan_sweep(const ModelContext& model, const PrefillOptions& options,
                                std::span<const SweepTarget> targets, std::int64_t prompt_len);

}  // namespace tidekv
