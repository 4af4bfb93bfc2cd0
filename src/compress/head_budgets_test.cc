#include "compress/head_budgets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace tidekv {
namespace {

using testing::ElementsAre;

const std::vector<std::int64_t> kRoomy(4, 100);

TEST(SplitOverHeads, MixesCountsWithAnEvenShareAndRoundsByLargestRemainders) {
  const std::vector<std::int32_t> counts = {6, 2, 1, 3};
  EXPECT_THAT(split_over_heads(counts, 0.2, 3, kRoomy), ElementsAre(6, 2, 1, 3));  // 5.4 2.2 1.4 3
  EXPECT_THAT(split_over_heads(counts, 0.5, 3, kRoomy), ElementsAre(5, 2, 2, 3));  // 4.5 2.5 2 3
  EXPECT_THAT(split_over_heads(counts, 1.0, 3, kRoomy), ElementsAre(3, 3, 3, 3));
  EXPECT_THAT(split_over_heads(counts, 0.0, 3, kRoomy), ElementsAre(6, 2, 1, 3));
}

TEST(SplitOverHeads, HandsOutCountsThatDoNotAddUp) {
  const std::vector<std::int32_t> none = {0, 0, 0};
  EXPECT_THAT(split_over_heads(none, 0.2, 10, kRoomy), ElementsAre(10, 10, 10));
}

const std::vector<std::int64_t> kTen(2, 10);

TEST(SplitAboveFloor, GivesWhatIsLeftToTheBestBeyondTheFloor) {
  // Two heads, base 3, floor 1. Head 0 has the scores 9 8 7 1, head 1 has 6 5; ids are 10 * head +
  // i.
  const std::vector<float> scores = {9, 8, 7, 6, 5, 1};
  const std::vector<std::int32_t> ids = {0, 1, 2, 10, 11, 3};
  EXPECT_THAT(split_above_floor(scores, ids, 10, 1, kTen), ElementsAre(4, 2));
  EXPECT_THAT(split_above_floor(scores, ids, 10, 3, kTen), ElementsAre(3, 3));
  EXPECT_THAT(split_above_floor(scores, ids, 10, 1, std::vector<std::int64_t>{3, 3}),
              ElementsAre(3, 3));
  // A head with nothing among the best gets its floor all the same.
  const std::vector<std::int32_t> of_one = {0, 1, 2, 3, 4, 5};
  EXPECT_THAT(split_above_floor(scores, of_one, 10, 2, kTen), ElementsAre(4, 2));
}

TEST(SplitOverHeads, AlwaysGivesTheWholeBudgetAndNeverMoreThanTheLimit) {
  std::mt19937 random(20240613);
  for (int trial = 0; trial < 500; ++trial) {
    const std::int64_t heads = 1 + static_cast<std::int64_t>(random() % 9);
    const std::int64_t base = static_cast<std::int64_t>(random() % 200);
    const std::int64_t limit = base + static_cast<std::int64_t>(random() % 50);
    std::vector<std::int32_t> counts(static_cast<std::size_t>(heads));
    for (std::int64_t left = heads * base; left > 0;) {  // any split with at most `limit` each
      const std::size_t head = random() % counts.size();
      if (counts[head] < limit) {
        counts[head] += 1;
        left -= 1;
      }
    }
    const double share = static_cast<double>(random() % 1001) / 1000.0;
    const std::vector<std::int64_t> limits(counts.size(), limit);
    const std::vector<std::int64_t> budgets = split_over_heads(counts, share, base, limits);
    EXPECT_EQ(std::accumulate(budgets.begin(), budgets.end(), std::int64_t{0}), heads * base);
    EXPECT_THAT(budgets, testing::Each(testing::Le(limit)));
    for (std::size_t head = 0; head < counts.size(); ++head) {
      EXPECT_NEAR(static_cast<double>(budgets[head]),
                  (1 - share) * counts[head] + share * static_cast<double>(base), 1.0);
    }
  }
}

// Heads that an earlier cut left short have less to give than the others.
TEST(SplitOverHeads, GivesToOthersWhatAHeadHasNoRoomFor) {
  const std::vector<std::int32_t> counts = {2, 10, 0};
  EXPECT_THAT(split_over_heads(counts, 1.0, 4, std::vector<std::int64_t>{2, 100, 3}),
              ElementsAre(2, 7, 3));
  EXPECT_THAT(split_over_heads(counts, 0.0, 4, std::vector<std::int64_t>{2, 9, 100}),
              ElementsAre(2, 9, 1));
}

}  // namespace
}  // namespace tidekv
