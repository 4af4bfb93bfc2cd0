#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace tidekv {
namespace {

SamplingOptions only_temperature(float temperature) {
  return {.temperature = temperature, .top_k = 0, .top_p = 1.0F, .min_p = 0.0F, .seed = 1};
}

// Ids that come up in `draws` draws.
std::set<std::int32_t> drawn(const SamplingOptions& options, const std::vector<float>& logits,
                             const std::vector<std::int32_t>& history = {}, int draws = 2000) {
  Sampler sampler(options, static_cast<std::int64_t>(logits.size()));
  std::set<std::int32_t> ids;
  for (int draw = 0; draw < draws; ++draw) {
    ids.insert(sampler.sample(logits, history).value());
  }
  return ids;
}

TEST(Sampler, TemperatureZeroTakesTheBestAndOfEqualOnesTheLowest) {
  EXPECT_EQ(drawn(only_temperature(0), {1, 3, 3, 2}), (std::set<std::int32_t>{1}));
}

TEST(Sampler, DrawsInProportionToTheSoftmax) {
  const std::vector<float> logits = {std::log(0.7F), std::log(0.2F), std::log(0.1F)};
  Sampler sampler(only_temperature(1), 3);
  std::vector<int> counts(3);
  constexpr int kDraws = 20000;
  for (int draw = 0; draw < kDraws; ++draw) {
    ++counts[static_cast<std::size_t>(sampler.sample(logits, {}).value())];
  }
  // Five standard deviations of a binomial count.
  const auto expect_share = [&](int count, double share) {
    EXPECT_NEAR(count, kDraws * share, 5 * std::sqrt(kDraws * share * (1 - share)));
  };
  expect_share(counts[0], 0.7);
  expect_share(counts[1], 0.2);
  expect_share(counts[2], 0.1);
}

TEST(Sampler, TopKKeepsTheKBest) {
  SamplingOptions options = only_temperature(5);
  options.top_k = 2;
  EXPECT_EQ(drawn(options, {0, 5, 4, 3.9F}), (std::set<std::int32_t>{1, 2}));
}

TEST(Sampler, TopPKeepsTheShortestHeadThatReachesIt) {
  SamplingOptions options = only_temperature(1);
  options.top_p = 0.8F;  // 0.6 is not enough, 0.6 + 0.3 is
  EXPECT_EQ(drawn(options, {std::log(0.6F), std::log(0.3F), std::log(0.1F)}),
            (std::set<std::int32_t>{0, 1}));
}

TEST(Sampler, MinPDropsWhatIsTooUnlikelyBesideTheBest) {
  SamplingOptions options = only_temperature(1);
  options.min_p = 0.4F;
  EXPECT_EQ(drawn(options, {std::log(0.6F), std::log(0.3F), std::log(0.1F)}),
            (std::set<std::int32_t>{0, 1}));
}

TEST(Sampler, FiltersLookAtProbabilitiesBeforeTheTemperature) {
  SamplingOptions options = only_temperature(100);  // would make all three alike
  options.min_p = 0.4F;
  EXPECT_EQ(drawn(options, {std::log(0.6F), std::log(0.3F), std::log(0.1F)}),
            (std::set<std::int32_t>{0, 1}));
}

TEST(Sampler, RepeatPenaltyReachesTokensOfAnEvictedPrompt) {
  SamplingOptions options = only_temperature(0);
  options.repeat_penalty = 2;
  options.repeat_last_n = -1;
  std::vector<std::int32_t> history(5000, 2);
  history[0] = 1;  // seen once, long ago
  EXPECT_EQ(drawn(options, {1.1F, 2, -3}, history), (std::set<std::int32_t>{0}));
  options.repeat_last_n = 64;  // id 1 is out of reach now
  EXPECT_EQ(drawn(options, {1.1F, 2, -3}, history), (std::set<std::int32_t>{1}));
}

TEST(Sampler, RepeatPenaltyLowersNegativeLogitsToo) {
  SamplingOptions options = only_temperature(0);
  options.repeat_penalty = 2;
  EXPECT_EQ(drawn(options, {-1, -1.5F}, {0}), (std::set<std::int32_t>{1}));
}

TEST(Sampler, SameSeedDrawsTheSameTokens) {
  const std::vector<float> logits(100, 0.0F);
  const auto sequence = [&](std::int64_t seed) {
    SamplingOptions options = only_temperature(1);
    options.seed = seed;
    Sampler sampler(options, 100);
    std::vector<std::int32_t> ids;
    for (int draw = 0; draw < 20; ++draw) {
      ids.push_back(sampler.sample(logits, {}).value());
    }
    return ids;
  };
  EXPECT_EQ(sequence(7), sequence(7));
  EXPECT_NE(sequence(7), sequence(8));
}

TEST(Sampler, IgnoresNotANumberAndRefusesNothingElse) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(drawn(only_temperature(0), {nan, 1, nan}), (std::set<std::int32_t>{1}));
  Sampler sampler(only_temperature(0), 2);
  const Result<std::int32_t> token = sampler.sample(std::vector<float>{nan, nan}, {});
  ASSERT_FALSE(token.ok());
  EXPECT_NE(token.error().message.find("no finite number"), std::string::npos);
  EXPECT_NE(token.error().message.find("--check-tensors"), std::string::npos);
}

TEST(Sampler, RefusesOptionsOutOfRangeByFlag) {
  const auto message = [](const SamplingOptions& options) {
    const Status status = check_sampling_options(options);
    return status.ok() ? std::string() : status.error().message;
  };
  EXPECT_EQ(message({}), "");
  EXPECT_NE(message({.temperature = -1}).find("--temp"), std::string::npos);
  EXPECT_NE(message({.temperature = std::nanf("")}).find("--temp"), std::string::npos);
  EXPECT_NE(message({.top_k = -1}).find("--top-k"), std::string::npos);
  EXPECT_NE(message({.top_p = 0}).find("--top-p"), std::string::npos);
  EXPECT_NE(message({.min_p = 2}).find("--min-p"), std::string::npos);
  EXPECT_NE(message({.repeat_penalty = 0}).find("--repeat-penalty"), std::string::npos);
  EXPECT_NE(message({.repeat_last_n = -2}).find("--repeat-last-n"), std::string::npos);
}

}  // namespace
}  // namespace tidekv
