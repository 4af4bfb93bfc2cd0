#include "memory/plan.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/checked_math.h"

namespace tidekv {
namespace {

struct Placed {
  std::int64_t offset;
  std::int64_t end;
};

std::int64_t slot_bytes(const TracedAllocation& allocation) {
  return round_up(allocation.bytes, kArenaAlignment) + kGuardBytes;
}

// Finds the allocations placed so far that are alive together with another: those alive at its
// birth, and those born while it lives. Allocations are numbered by birth. A chunk goes through a
// layer many thousand times in a long prompt, so looking at all that is placed would take too long.
class PlacedByTime {
 public:
  explicit PlacedByTime(std::span<const TracedAllocation> trace)
      : trace_(trace), alive_(2 * trace.size()) {}

  void add(std::size_t index) {
    placed_.insert(index);
    // In the tree over all births, the nodes that make up the births this one lives through.
    std::size_t low = index + trace_.size();
    std::size_t high = first_born_after_death(index) + trace_.size();
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) {
        alive_[low++].push_back(index);
      }
      if (high % 2 == 1) {
        alive_[--high].push_back(index);
      }
    }
  }

  // Calls visit(other) once for each.
  template <typename Visit>
  void for_each_alive_with(std::size_t index, const Visit& visit) const {
    for (std::size_t node = index + trace_.size(); node > 0; node /= 2) {
      std::for_each(alive_[node].begin(), alive_[node].end(), visit);
    }
    const std::size_t end = first_born_after_death(index);
    for (auto born = placed_.upper_bound(index); born != placed_.end() && *born < end; ++born) {
      visit(*born);
    }
  }

 private:
  std::size_t first_born_after_death(std::size_t index) const {
    const auto after = std::lower_bound(
        trace_.begin() + static_cast<std::ptrdiff_t>(index), trace_.end(), trace_[index].death,
        [](const TracedAllocation& other, std::int64_t death) { return other.birth < death; });
    return static_cast<std::size_t>(after - trace_.begin());
  }

  std::span<const TracedAllocation> trace_;
  std::set<std::size_t> placed_;
  std::vector<std::vector<std::size_t>> alive_;  // by node: those alive at every birth under it
};

// `neighbours` are alive together with what needs `size` bytes. The lowest gap between them.
std::int64_t lowest_offset(std::vector<Placed>& neighbours, std::int64_t size) {
  std::sort(neighbours.begin(), neighbours.end(),
            [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
  std::int64_t offset = 0;
  for (const Placed& other : neighbours) {
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
  PlacedByTime placed(trace);
  std::vector<Placed> neighbours;
  for (const std::size_t index : order) {
    neighbours.clear();
    placed.for_each_alive_with(index, [&](std::size_t other) {
      const std::int64_t offset = plan.allocations[other].offset;
      neighbours.push_back({offset, offset + slot_bytes(trace[other])});
    });
    const std::int64_t size = slot_bytes(trace[index]);
    const std::int64_t offset = lowest_offset(neighbours, size);
    placed.add(index);
    plan.allocations[index] = {trace[index].bytes, offset};
    plan.arena_bytes = std::max(plan.arena_bytes, offset + size);
  }
  return plan;
}

}  // namespace tidekv
