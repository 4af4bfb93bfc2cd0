// A memory plan: every allocation a request will make, in order, each with its place.
//
// The planner runs the real schedule on the dry-run backend and records the trace of allocations
// and releases. Lifetimes are then known, so each allocation gets an offset in one arena such that
// no two live ones overlap. The run reserves that arena once; after that nothing can fail to
// allocate, and no byte comes from anywhere else.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/component.h"

namespace tidekv {

// Offsets are multiples of this, and at least kGuardBytes lie between neighbours, so that a write
// past an end can be seen (poisoned under AddressSanitizer).
inline constexpr std::int64_t kArenaAlignment = 64;
inline constexpr std::int64_t kGuardBytes = 64;

// One allocation of the trace: born at event `birth`, released at event `death`. A trace is in the
// order of births.
struct TracedAllocation {
  std::int64_t bytes = 0;
  std::int64_t birth = 0;
  std::int64_t death = INT64_MAX;  // never released before the request ends
};

struct PlannedAllocation {
  std::int64_t bytes = 0;
  std::int64_t offset = 0;  // in the arena
};

struct MemoryPlan {
  std::vector<PlannedAllocation> allocations;  // in the order the run makes them
  std::int64_t arena_bytes = 0;                // what reserve() takes from the system
  std::int64_t pool_bytes = 0;                 // and beside it for the offload pool
  ComponentBytes peak;                         // composition at the peak, weights included
  std::int64_t num_timeline_events = 0;

  std::int64_t peak_bytes() const { return peak.total(); }
};

// Places the traced allocations in one arena: largest first, each at the lowest offset where it
// overlaps no placed allocation alive at the same time. Fills `allocations` and `arena_bytes`.
MemoryPlan place_allocations(std::span<const TracedAllocation> trace);

}  // namespace tidekv
