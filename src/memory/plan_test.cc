#include "memory/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace tidekv {
namespace {

bool alive_together(const TracedAllocation& a, const TracedAllocation& b) {
  return std::max(a.birth, b.birth) < std::min(a.death, b.death);
}

std::int64_t sum_of_sizes(const std::vector<TracedAllocation>& trace) {
  std::int64_t sum = 0;
  for (const TracedAllocation& allocation : trace) {
    sum += (allocation.bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
    sum += kGuardBytes;
  }
  return sum;
}

// The most bytes that are live at one event; no arena can be smaller.
std::int64_t most_live_bytes(const std::vector<TracedAllocation>& trace) {
  std::int64_t most = 0;
  for (const TracedAllocation& at : trace) {
    std::int64_t live = 0;
    for (const TracedAllocation& other : trace) {
      live += other.birth <= at.birth && at.birth < other.death ? other.bytes : 0;
    }
    most = std::max(most, live);
  }
  return most;
}

// Events in order, each an allocation of random size or the release of a random live one; some
// allocations are never released.
std::vector<TracedAllocation> random_trace(std::mt19937_64& random, int num_events) {
  std::vector<TracedAllocation> trace;
  std::vector<std::size_t> live;
  for (int event = 0; event < num_events; ++event) {
    if (live.empty() || random() % 9 < 5) {
      live.push_back(trace.size());
      const auto bytes = static_cast<std::int64_t>(random() % (std::uint64_t{1} << random() % 12));
      trace.push_back({.bytes = bytes, .birth = event});
    } else {
      const std::size_t which = random() % live.size();
      trace[live[which]].death = event;
      live[which] = live.back();
      live.pop_back();
    }
  }
  return trace;
}

void expect_no_live_neighbours_touch(const std::vector<TracedAllocation>& trace,
                                     const MemoryPlan& plan) {
  for (std::size_t a = 0; a < trace.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (!alive_together(trace[a], trace[b])) {
        continue;
      }
      const PlannedAllocation& low =
          plan.allocations[plan.allocations[a].offset < plan.allocations[b].offset ? a : b];
      const PlannedAllocation& high = plan.allocations[&low == &plan.allocations[a] ? b : a];
      ASSERT_LE(low.offset + low.bytes + kGuardBytes, high.offset) << a << " and " << b;
    }
  }
}

// The rule as the header states it, by trying every aligned offset.
std::vector<std::int64_t> offsets_by_search(const std::vector<TracedAllocation>& trace) {
  std::vector<std::size_t> order(trace.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return trace[a].bytes > trace[b].bytes; });
  std::vector<std::int64_t> offsets(trace.size(), -1);
  const auto end_of = [&](std::size_t index, std::int64_t offset) {
    return offset + trace[index].bytes + kGuardBytes;
  };
  for (const std::size_t index : order) {
    const auto collides = [&](std::int64_t offset) {
      for (std::size_t other = 0; other < trace.size(); ++other) {
        if (offsets[other] >= 0 && alive_together(trace[index], trace[other]) &&
            offset < end_of(other, offsets[other]) && offsets[other] < end_of(index, offset)) {
          return true;
        }
      }
      return false;
    };
    std::int64_t offset = 0;
    while (collides(offset)) {
      offset += kArenaAlignment;
    }
    offsets[index] = offset;
  }
  return offsets;
}

TEST(PlaceAllocations, OfNothingNeedsNoArena) {
  const MemoryPlan plan = place_allocations({});
  EXPECT_TRUE(plan.allocations.empty());
  EXPECT_EQ(plan.arena_bytes, 0);
}

TEST(PlaceAllocations, ReusesTheBytesOfAReleasedAllocation) {
  const std::vector<TracedAllocation> trace = {{.bytes = 1000, .birth = 0, .death = 1},
                                               {.bytes = 1000, .birth = 1, .death = 2}};
  const MemoryPlan plan = place_allocations(trace);
  EXPECT_EQ(plan.allocations[0].offset, plan.allocations[1].offset);
  EXPECT_EQ(plan.arena_bytes, 1024 + kGuardBytes);
}

TEST(PlaceAllocations, KeepsAnAllocationThatIsNeverReleasedApart) {
  const std::vector<TracedAllocation> trace = {{.bytes = 64, .birth = 0},
                                               {.bytes = 64, .birth = 5, .death = 6},
                                               {.bytes = 64, .birth = 7, .death = 8}};
  const MemoryPlan plan = place_allocations(trace);
  EXPECT_EQ(plan.allocations[0].offset, 0);
  EXPECT_EQ(plan.allocations[1].offset, 128);
  EXPECT_EQ(plan.allocations[2].offset, 128);
}

TEST(PlaceAllocations, KeepsTheOrderAndSizesOfTheTrace) {
  std::mt19937_64 random(3);
  const std::vector<TracedAllocation> trace = random_trace(random, 60);
  const MemoryPlan plan = place_allocations(trace);
  ASSERT_EQ(plan.allocations.size(), trace.size());
  for (std::size_t i = 0; i < trace.size(); ++i) {
    EXPECT_EQ(plan.allocations[i].bytes, trace[i].bytes);
  }
}

class RandomTrace : public testing::TestWithParam<std::uint64_t> {
 protected:
  RandomTrace() {
    std::mt19937_64 random(GetParam());
    trace_ = random_trace(random, 20 + static_cast<int>(GetParam() % 7) * 20);
    plan_ = place_allocations(trace_);
  }
  std::vector<TracedAllocation> trace_;
  MemoryPlan plan_;
};

TEST_P(RandomTrace, LeavesAGuardBetweenAllocationsAliveAtOnce) {
  expect_no_live_neighbours_touch(trace_, plan_);
}

TEST_P(RandomTrace, AlignsEveryOffsetAndEndsInsideTheArena) {
  for (const PlannedAllocation& allocation : plan_.allocations) {
    EXPECT_EQ(allocation.offset % kArenaAlignment, 0);
    EXPECT_GE(allocation.offset, 0);
    EXPECT_LE(allocation.offset + allocation.bytes + kGuardBytes, plan_.arena_bytes);
  }
}

TEST_P(RandomTrace, NeedsNoMoreThanAllSizesTogetherAndNoLessThanTheLivePeak) {
  EXPECT_LE(plan_.arena_bytes, sum_of_sizes(trace_));
  EXPECT_GE(plan_.arena_bytes, most_live_bytes(trace_));
}

TEST_P(RandomTrace, TakesTheLowestOffsetThatCollidesWithNothing) {
  const std::vector<std::int64_t> wanted = offsets_by_search(trace_);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(plan_.allocations[i].offset, wanted[i]) << "allocation " << i;
  }
}

TEST_P(RandomTrace, IsPlacedTheSameWayTwice) {
  const MemoryPlan again = place_allocations(trace_);
  ASSERT_EQ(again.arena_bytes, plan_.arena_bytes);
  for (std::size_t i = 0; i < trace_.size(); ++i) {
    EXPECT_EQ(again.allocations[i].offset, plan_.allocations[i].offset);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTrace, testing::Range<std::uint64_t>(0, 40));

}  // namespace
}  // namespace tidekv
