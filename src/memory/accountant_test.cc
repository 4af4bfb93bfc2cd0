#include "memory/accountant.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <vector>

namespace tidekv {
namespace {

void add(Accountant& ledger, Component component, std::int64_t bytes) {
  const Charge charge{component, bytes};
  ledger.add({&charge, 1});
}

void remove(Accountant& ledger, Component component, std::int64_t bytes) {
  const Charge charge{component, bytes};
  ledger.remove({&charge, 1});
}

TEST(Accountant, StartsEmpty) {
  const Accountant ledger;
  EXPECT_EQ(ledger.live_bytes(), 0);
  EXPECT_EQ(ledger.peak_bytes(), 0);
  EXPECT_EQ(ledger.num_events(), 0);
}

TEST(Accountant, KeepsLiveBytesByComponent) {
  Accountant ledger;
  add(ledger, Component::kFullKv, 100);
  add(ledger, Component::kActivations, 30);
  remove(ledger, Component::kFullKv, 40);
  EXPECT_EQ(ledger.live()[Component::kFullKv], 60);
  EXPECT_EQ(ledger.live()[Component::kActivations], 30);
  EXPECT_EQ(ledger.live_bytes(), 90);
}

TEST(Accountant, RemembersWhatThePeakWasMadeOf) {
  Accountant ledger;
  add(ledger, Component::kFullKv, 100);
  remove(ledger, Component::kFullKv, 100);
  add(ledger, Component::kCompactCache, 70);
  add(ledger, Component::kLogits, 20);
  EXPECT_EQ(ledger.peak_bytes(), 100);
  EXPECT_EQ(ledger.peak()[Component::kFullKv], 100);
  EXPECT_EQ(ledger.peak()[Component::kCompactCache], 0);
}

TEST(Accountant, MeasuresThePeakAfterAllChargesOfOneAllocation) {
  Accountant ledger;
  const std::array<Charge, 2> both = {Charge{Component::kCompactCache, 10},
                                      Charge{Component::kDecodeGrowth, 5}};
  ledger.add(both);
  EXPECT_EQ(ledger.peak_bytes(), 15);
  EXPECT_EQ(ledger.peak()[Component::kDecodeGrowth], 5);
}

TEST(Accountant, ChangesNoTotalWhenBytesGetAnotherName) {
  Accountant ledger;
  add(ledger, Component::kFullKv, 100);
  ledger.retag(Component::kFullKv, Component::kCompactCache, 60);
  EXPECT_EQ(ledger.live_bytes(), 100);
  EXPECT_EQ(ledger.peak_bytes(), 100);
  EXPECT_EQ(ledger.live()[Component::kFullKv], 40);
  EXPECT_EQ(ledger.live()[Component::kCompactCache], 60);
}

TEST(Accountant, LabelsEventsWithStageAndLayer) {
  Accountant ledger(4);
  ledger.enter(Stage::kPrefill, 3);
  add(ledger, Component::kActivations, 8);
  ledger.enter(Stage::kDecode, -1);
  remove(ledger, Component::kActivations, 8);
  ASSERT_EQ(ledger.timeline().size(), 2U);
  EXPECT_EQ(ledger.timeline()[0].stage, Stage::kPrefill);
  EXPECT_EQ(ledger.timeline()[0].layer, 3);
  EXPECT_EQ(ledger.timeline()[1].stage, Stage::kDecode);
  EXPECT_EQ(ledger.timeline()[1].layer, -1);
  EXPECT_EQ(ledger.timeline()[1].delta_bytes, -8);
}

TEST(Accountant, CountsEventsItHasNoRoomFor) {
  Accountant ledger(2);
  for (int i = 0; i < 5; ++i) {
    add(ledger, Component::kLogits, 1);
  }
  EXPECT_EQ(ledger.timeline().size(), 2U);
  EXPECT_EQ(ledger.num_events(), 5);
}

TEST(Accountant, DoesNotRecordChangesOfZeroBytes) {
  Accountant ledger(2);
  add(ledger, Component::kLogits, 0);
  EXPECT_EQ(ledger.num_events(), 0);
}

TEST(Accountant, NeverMovesItsTimeline) {
  Accountant ledger(100);
  add(ledger, Component::kLogits, 1);
  const TimelineEvent* first = ledger.timeline().data();
  for (int i = 0; i < 300; ++i) {
    add(ledger, Component::kLogits, 1);
  }
  EXPECT_EQ(ledger.timeline().data(), first);
  EXPECT_EQ(ledger.timeline().size(), 100U);
}

TEST(AccountantDeathTest, StopsWhenMoreIsReleasedThanWasAllocated) {
  Accountant ledger;
  add(ledger, Component::kFullKv, 10);
  EXPECT_DEATH(remove(ledger, Component::kFullKv, 11), "check failed");
  EXPECT_DEATH(ledger.retag(Component::kLogits, Component::kFullKv, 1), "check failed");
}

// Replays the timeline from its deltas alone and finds the ledger's own totals and peak.
TEST(Accountant, TimelineAddsUpToTheLedger) {
  constexpr std::uint64_t kSeed = 11;
  std::mt19937_64 random(kSeed);
  Accountant ledger(4000);
  std::vector<Charge> live;
  for (int step = 0; step < 2000; ++step) {
    if (live.empty() || random() % 5 < 3) {
      const Charge charge{static_cast<Component>(random() % kNumComponents),
                          static_cast<std::int64_t>(random() % 1000 + 1)};
      ledger.add({&charge, 1});
      live.push_back(charge);
    } else {
      const std::size_t which = random() % live.size();
      ledger.remove({&live[which], 1});
      live[which] = live.back();
      live.pop_back();
    }
  }
  ASSERT_EQ(ledger.num_events(), static_cast<std::int64_t>(ledger.timeline().size()));
  ComponentBytes replayed;
  std::int64_t peak = 0;
  for (const TimelineEvent& event : ledger.timeline()) {
    replayed[event.component] += event.delta_bytes;
    ASSERT_EQ(event.live_bytes, replayed.total()) << "seed " << kSeed;
    peak = std::max(peak, replayed.total());
  }
  EXPECT_EQ(replayed, ledger.live());
  EXPECT_EQ(peak, ledger.peak_bytes());
}

}  // namespace
}  // namespace tidekv
