#include "memory/plan.h"

#include <algorithm>
#include <numeric>

#include "base/checked_math.h"

namespace tidekv {
namespace {

struct Placed {
  std::int64_t offset;
  std::int64_t end;
  const TracedAllocation* source;
};

bool alive_together(const TracedAllocation& a, const TracedAllocation& b) {
  return a.birth < b.death && b.birth < a.death;
}

std::int64_t slot_bytes(const TracedAllocation& allocation) {
  return round_up(allocation.bytes, kArenaAlignment) + kGuardBytes;
}

// `placed` is sorted by offset. The lowest gap between allocations alive together with `wanted`.
std::int64_t lowest_offset(const std::vector<Placed>& placed, const TracedAllocation& wanted) {
  const std::int64_t size = slot_bytes(wanted);
  std::int64_t offset = 0;
  for (const Placed& other : placed) {
    if (!alive_together(*other.source, wanted)) {
      continue;
    }
    if (offset + size <= other.offset) {
      break;
    }
    offset = std::max(offset, other.end);
  }
  return offset;
}

}  // namespace

MemoryPlan place_allocations(std::span<const TracedAllocation> trace) {
  std::vector<std::size_t> order(trace.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return trace[a].bytes > trace[b].bytes; });

  MemoryPlan plan;
  plan.allocations.resize(trace.size());
  std::vector<Placed> placed;
  placed.reserve(trace.size());
  for (const std::size_t index : order) {
    const TracedAllocation& wanted = trace[index];
    const std::int64_t offset = lowest_offset(placed, wanted);
    const Placed entry{offset, offset + slot_bytes(wanted), &wanted};
    const auto at = std::upper_bound(
        placed.begin(), placed.end(), offset,
        [](std::int64_t value, const Placed& other) { return value < other.offset; });
    placed.insert(at, entry);
    plan.allocations[index] = {wanted.bytes, offset};
    plan.arena_bytes = std::max(plan.arena_bytes, entry.end);
  }
  return plan;
}

}  // namespace tidekv
