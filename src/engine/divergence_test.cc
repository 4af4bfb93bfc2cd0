#include "engine/divergence.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace tidekv {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Values by hand; a few roundings of doubles of about 1 apart at most.
constexpr double kRounding = 1e-15;

TEST(RowDrift, IsTheDistanceOverTheReferencesNormAndTheCosine) {
  // (1, 2) from (3, 4): |(-2, -2)| / 5 and 11 / (5 sqrt 5).
  const Drift drift = row_drift(std::array{1.0, 2.0}, std::array{3.0, 4.0});
  EXPECT_NEAR(drift.relative_l2, std::sqrt(8.0) / 5, kRounding);
  EXPECT_NEAR(drift.cosine, 11 / (5 * std::sqrt(5.0)), kRounding);
}

TEST(RowDrift, OfEqualRowsIsExactlyZeroAndOne) {
  const std::array row = {0.1, -0.7, 1e-300, 3.3, 1.0 / 3};
  const Drift drift = row_drift(row, row);
  EXPECT_EQ(drift.relative_l2, 0);
  EXPECT_EQ(drift.cosine, 1);
}

TEST(RowDrift, OfAScaledRowIsTheScaleButNotTheDirection) {
  const Drift drift = row_drift(std::array{6.0, 8.0}, std::array{3.0, 4.0});
  EXPECT_EQ(drift.relative_l2, 1);
  EXPECT_EQ(drift.cosine, 1);
}

TEST(RowDrift, OfAnOppositeRowIsTwoAndMinusOne) {
  const Drift drift = row_drift(std::array{-3.0, -4.0}, std::array{3.0, 4.0});
  EXPECT_EQ(drift.relative_l2, 2);
  EXPECT_EQ(drift.cosine, -1);
}

TEST(RowDrift, OfZerosIsInfiniteFromZerosAndOneFromOthers) {
  const Drift from_zeros = row_drift(std::array{1.0, 0.0}, std::array{0.0, 0.0});
  EXPECT_EQ(from_zeros.relative_l2, kInfinity);
  EXPECT_EQ(from_zeros.cosine, 0);
  const Drift to_zeros = row_drift(std::array{0.0, 0.0}, std::array{0.0, 2.0});
  EXPECT_EQ(to_zeros.relative_l2, 1);
  EXPECT_EQ(to_zeros.cosine, 0);
}

TEST(LogSoftmax, GivesLogarithmsOfProbabilities) {
  // Weights 1, 1, 2 of 4 whatever is added to all.
  for (const float shift : {0.0F, 1000.0F, -1000.0F}) {
    const float ln2 = 0.69314718F;
    const std::vector<double> log_p = log_softmax(std::array{shift, shift, shift + ln2});
    const double added = static_cast<double>(shift + ln2) - static_cast<double>(shift);
    EXPECT_NEAR(log_p[0], -std::log(2 + std::exp(added)), kRounding);
    EXPECT_NEAR(log_p[2], added - std::log(2 + std::exp(added)), kRounding);
  }
}

TEST(LogSoftmax, GivesWhatIsImpossibleNoProbability) {
  const std::vector<double> log_p =
      log_softmax(std::array{0.0F, -std::numeric_limits<float>::infinity(), 0.0F});
  EXPECT_NEAR(log_p[0], -std::log(2.0), kRounding);
  EXPECT_EQ(log_p[1], -kInfinity);
}

TEST(KlDivergence, OfTwoCoinsIsWhatPenAndPaperSay) {
  const std::array log_p = {std::log(0.5), std::log(0.5)};
  const std::array log_q = {std::log(0.25), std::log(0.75)};
  // 0.5 log 2 + 0.5 log(2/3), and the other way round.
  EXPECT_NEAR(kl_divergence(log_p, log_q), 0.5 * std::log(4.0 / 3), kRounding);
  EXPECT_NEAR(kl_divergence(log_q, log_p), 0.25 * std::log(0.5) + 0.75 * std::log(1.5), kRounding);
}

TEST(KlDivergence, OfEqualDistributionsIsExactlyZero) {
  const std::vector<double> log_p = log_softmax(std::array{0.3F, -7.25F, 11.0F, 0.1F});
  EXPECT_EQ(kl_divergence(log_p, log_p), 0);
  EXPECT_EQ(js_divergence(log_p, log_p), 0);
}

TEST(KlDivergence, IsInfiniteWhereThePossibleIsThoughtImpossible) {
  const std::array log_p = {std::log(0.5), std::log(0.5)};
  const std::array certain = {0.0, -kInfinity};
  EXPECT_EQ(kl_divergence(log_p, certain), kInfinity);
  EXPECT_NEAR(kl_divergence(certain, log_p), std::log(2.0), kRounding);
}

TEST(JsDivergence, OfCertainAndFairIsWhatPenAndPaperSay) {
  const std::array certain = {0.0, -kInfinity};
  const std::array fair = {std::log(0.5), std::log(0.5)};
  // The mean is (3/4, 1/4): (log(4/3) + 0.5 log(2/3) + 0.5 log 2) / 2.
  const double expected = (std::log(4.0 / 3) + 0.5 * std::log(2.0 / 3) + 0.5 * std::log(2.0)) / 2;
  EXPECT_NEAR(js_divergence(certain, fair), expected, kRounding);
  EXPECT_NEAR(js_divergence(fair, certain), expected, kRounding);
}

TEST(JsDivergence, OfTwoCertaintiesIsLogTwo) {
  const std::array heads = {0.0, -kInfinity};
  const std::array tails = {-kInfinity, 0.0};
  EXPECT_NEAR(js_divergence(heads, tails), std::log(2.0), kRounding);
}

TEST(Likeliest, IsTheLowestOfTheLargest) {
  EXPECT_EQ(likeliest(std::array{-3.0, -1.0, -1.0, -2.0}), 1U);
}

}  // namespace
}  // namespace tidekv
