#include "compress/layer_budgets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace tidekv {
namespace {

std::vector<std::int64_t> budgets_of(const PyramidShape& shape, std::size_t num_layers) {
  std::vector<std::int64_t> budgets(num_layers);
  pyramid_budgets(shape, budgets);
  return budgets;
}

std::int64_t sum_of(const std::vector<std::int64_t>& budgets) {
  return std::accumulate(budgets.begin(), budgets.end(), std::int64_t{0});
}

struct Line {
  std::int64_t budget;
  std::int64_t window;
  std::vector<std::int64_t> layers;  // 0, 1, 15, 16 and 31 of 32
};

TEST(PyramidBudgets, FallInAStraightLineAndAddUp) {
  const std::vector<Line> lines = {
      {256, 8, {492, 476, 264, 248, 20}},        {256, 32, {469, 455, 263, 249, 43}},
      {256, 64, {438, 427, 262, 250, 74}},       {1024, 8, {1989, 1927, 1055, 993, 59}},
      {1024, 32, {1966, 1906, 1054, 994, 82}},   {1024, 64, {1936, 1877, 1053, 995, 112}},
      {4096, 8, {7980, 7729, 4221, 3971, 212}},  {4096, 32, {7957, 7708, 4221, 3971, 235}},
      {4096, 64, {7926, 7679, 4220, 3972, 266}},
  };
  for (const Line& line : lines) {
    const auto budgets = budgets_of({131072, line.budget, line.window, 20}, 32);
    const std::vector<std::int64_t> some = {budgets[0], budgets[1], budgets[15], budgets[16],
                                            budgets[31]};
    EXPECT_EQ(some, line.layers) << "K " << line.budget << ", W " << line.window;
    EXPECT_EQ(sum_of(budgets), 32 * line.budget);
  }
  EXPECT_THAT(budgets_of({1024, 64, 16, 20}, 4), testing::ElementsAre(110, 79, 49, 18));
}

TEST(PyramidBudgets, AreEqualWhereAPromptIsShorterThanTwiceTheAverage) {
  EXPECT_THAT(budgets_of({8127, 4096, 32, 20}, 32), testing::Each(4096));
  EXPECT_GT(budgets_of({8128, 4096, 32, 20}, 32).front(), 4096);
  EXPECT_THAT(budgets_of({100000, 4096, 32, 20}, 1), testing::ElementsAre(4096));
}

// Numbers that those programs give.
TEST(PyramidBudgets, OfOtherProgramsAreTheirs) {
  PyramidShape shape{131072, 1024, 32, 20, BudgetRule::kKvcf};
  EXPECT_THAT(budgets_of(shape, 32).front(), 1967);
  EXPECT_THAT(budgets_of(shape, 32)[1], 1907);
  EXPECT_THAT(budgets_of(shape, 32).back(), 107);
  EXPECT_EQ(sum_of(budgets_of(shape, 32)), 32 * 1024 + 416);
  EXPECT_THAT(budgets_of({1024, 64, 16, 20, BudgetRule::kKvcf}, 4),
              testing::ElementsAre(110, 80, 50, 20));
  shape = {131072, 4096, 64, 20, BudgetRule::kKvpress};
  EXPECT_EQ(budgets_of(shape, 32).front(), 7987);
  EXPECT_EQ(budgets_of(shape, 32).back(), 205);
  EXPECT_EQ(sum_of(budgets_of(shape, 32)), 32 * 4096);
  EXPECT_THAT(budgets_of({131072, 1024, 64, 20, BudgetRule::kKvpress}, 32), testing::Each(1024));
}

TEST(PyramidBudgets, OfRandomShapesAddUpFallAndFitThePrompt) {
  std::mt19937 random(20240614);
  const auto below = [&](std::int64_t bound) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(bound));
  };
  for (int trial = 0; trial < 2000; ++trial) {
    PyramidShape shape;
    shape.num_mandatory = below(80);
    shape.budget = std::max<std::int64_t>(1, shape.num_mandatory + below(3000));
    shape.prompt_len = shape.budget + 1 + below(trial % 2 == 0 ? 50 : 20000);
    shape.steepness = 1 + below(60);
    const std::vector<std::int64_t> budgets =
        budgets_of(shape, static_cast<std::size_t>(1 + below(80)));
    SCOPED_TRACE("S " + std::to_string(shape.prompt_len) + ", K " + std::to_string(shape.budget) +
                 ", mandatory " + std::to_string(shape.num_mandatory) + ", beta " +
                 std::to_string(shape.steepness));
    EXPECT_EQ(sum_of(budgets), static_cast<std::int64_t>(budgets.size()) * shape.budget);
    EXPECT_TRUE(std::is_sorted(budgets.begin(), budgets.end(), std::greater<>()));
    EXPECT_GE(budgets.back(), shape.num_mandatory);
    EXPECT_LE(budgets.front(), shape.prompt_len);
  }
}

}  // namespace
}  // namespace tidekv
