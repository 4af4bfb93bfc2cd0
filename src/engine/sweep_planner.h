// Plans a sweep like any request, by walking its real schedule on the dry-run backend.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/planner.h"
#include "tidekv/sweep.h"

namespace tidekv {

struct PlannedSweep {
  ResolvedRequest request;  // layer-major, with every cache
  MemoryPlan memory;
  SweepPlan report;
};

// How many of them there may be; `what` begins the error.
Status check_targets(std::span<const SweepTarget> targets, const std::string& what);

// The target as a request of its own. `options` are those that all targets share.
Result<ResolvedRequest> resolve_target(const ModelContext& model, PrefillOptions options,
                                       const SweepTarget& target, std::int64_t prompt_len);

// Checks every target as a request of its own, and, if it is not the only one, that its method
// chooses at a layer's end. Errors name the flag or the method.
Result<PlannedSweep> plan_sweep(const ModelContext& model, const PrefillOptions& options,
                                std::span<const SweepTarget> targets, std::int64_t prompt_len);

}  // namespace tidekv
