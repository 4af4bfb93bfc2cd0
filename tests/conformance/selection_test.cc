// From weights to retained positions: pool_scores, average_units, topk_merge, count_ids, topk_take.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "conformance/device.h"
#include "oracle/attention_ops.h"

namespace tidekv::conformance {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// --- pool_scores ---

// Columns [first, first + count) of every row.
HostTensor cols_at(const HostTensor& all, std::int64_t first, std::int64_t count) {
  HostTensor part(all.dtype(), all.rows(), count);
  for (std::int64_t row = 0; row < all.rows(); ++row) {
    for (std::int64_t col = 0; col < count; ++col) {
      part.set(row, col, all.at(row, first + col));
    }
  }
  return part;
}

// The range that must be scored for `wanted`, plus `slack` keys on either side where there are any.
KeyRange with_halo(KeyRange wanted, const PoolRecipe& recipe, std::int64_t prefix_len,
                   std::int64_t slack = 0) {
  const std::int64_t halo = recipe.kernel_len / 2 + slack;
  return {std::max<std::int64_t>(0, wanted.begin - halo), std::min(prefix_len, wanted.end + halo)};
}

std::vector<PoolRecipe> all_recipes() {
  std::vector<PoolRecipe> recipes;
  for (const GroupReduce reduce : {GroupReduce::kMean, GroupReduce::kMax}) {
    for (const Pool pool : {Pool::kMax, Pool::kAverage}) {
      for (const std::int64_t kernel_len : {1, 3, 7}) {
        for (const HeadScores heads : {HeadScores::kOwn, HeadScores::kMean}) {
          recipes.push_back({reduce, pool, kernel_len, heads});
        }
      }
    }
  }
  return recipes;
}

std::string describe(const PoolRecipe& recipe) {
  return std::string(recipe.group_reduce == GroupReduce::kMean ? "mean" : "max") + " of group, " +
         (recipe.pool == Pool::kMax ? "max" : "average") + " over " +
         std::to_string(recipe.kernel_len) +
         (recipe.heads == HeadScores::kMean ? ", heads agree" : "");
}

class PoolScores : public BackendTest {
 protected:
  // `all` holds the weights of the whole prefix.
  HostTensor pool(const HostTensor& all, std::int64_t num_kv_heads, const PoolRecipe& recipe,
                  const Backend::PoolRanges& ranges) {
    const DeviceTensor weights =
        device_.put(cols_at(all, ranges.scored.begin, ranges.scored.len()));
    const DeviceTensor raw = device_.garbage(DType::kF32, num_kv_heads, ranges.scored.len());
    const DeviceTensor scores = device_.garbage(DType::kF32, num_kv_heads, ranges.wanted.len());
    backend().pool_scores(weights.view, recipe, ranges, raw.view, scores.view);
    return device_.get(scores.view);
  }

  // Weights as a softmax leaves them: most tiny, a few near 1, some exactly zero.
  HostTensor random_weights(std::int64_t rows, std::int64_t cols) {
    HostTensor weights(DType::kF32, rows, cols);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t col = 0; col < cols; ++col) {
        const double weight = std::exp(-12.0 * random_.uniform(0.0, 1.0));
        weights.set(row, col, random_.below(10) == 0 ? 0.0 : weight);
      }
    }
    return weights;
  }
};
TIDEKV_ON_EVERY_BACKEND(PoolScores);

TEST_P(PoolScores, IsWithinRoundingOverAWholePrefix) {
  for (const PoolRecipe& recipe : all_recipes()) {
    for (const std::int64_t group : {1, 3}) {
      for (const std::int64_t prefix_len : {1, 2, 3, 5, 64, 255, 300}) {
        constexpr std::int64_t kWindow = 5;
        const HostTensor all = random_weights(2 * group * kWindow, prefix_len);
        const Backend::PoolRanges ranges{{0, prefix_len}, {0, prefix_len}, prefix_len, kWindow};
        EXPECT_TRUE(within_bounds(pool(all, 2, recipe, ranges),
                                  oracle::pool_scores(all, 2, recipe, ranges)))
            << describe(recipe) << ", group " << group << ", prefix " << prefix_len;
      }
    }
  }
}

// Any cut into blocks, each with its halo, gives the bits of the whole.
TEST_P(PoolScores, IsTheSameForEveryPartitionOfThePrefix) {
  constexpr std::int64_t kPrefix = 530;
  constexpr std::int64_t kWindow = 8;
  const HostTensor all = random_weights(2 * 2 * kWindow, kPrefix);
  for (const PoolRecipe& recipe : all_recipes()) {
    const KeyRange whole_range{0, kPrefix};
    const HostTensor whole = pool(all, 2, recipe, {whole_range, whole_range, kPrefix, kWindow});
    for (const std::int64_t block : {1, 2, 7, 64, 256, 500}) {
      // Blocks of one and two keys are many: only those at both ends and around 256.
      for (std::int64_t begin = 0; begin < kPrefix; begin += block) {
        if (block < 7 && begin > 9 && (begin < 250 || begin > 260) && begin < kPrefix - 10) {
          continue;
        }
        const KeyRange wanted{begin, std::min(kPrefix, begin + block)};
        const KeyRange scored = with_halo(wanted, recipe, kPrefix, begin % 3);
        ASSERT_TRUE(same_bits(pool(all, 2, recipe, {scored, wanted, kPrefix, kWindow}),
                              cols_at(whole, wanted.begin, wanted.len())))
            << describe(recipe) << ", block " << block << " at " << begin;
      }
    }
  }
}

TEST_P(PoolScores, AveragesWithZerosBeyondBothEndsOfThePrefix) {
  HostTensor ones(DType::kF32, 1, 6);
  ones.fill(1.0);
  const PoolRecipe recipe{GroupReduce::kMean, Pool::kAverage, 3};
  const HostTensor got = pool(ones, 1, recipe, {{0, 6}, {0, 6}, 6, 1});
  HostTensor wanted = ones;
  wanted.set(0, 0, static_cast<double>(2.0F / 3.0F));
  wanted.set(0, 5, static_cast<double>(2.0F / 3.0F));
  EXPECT_TRUE(same_bits(got, wanted));
}

TEST_P(PoolScores, ReducesTheGroupBeforePooling) {
  // Two query heads with one peak each, at different keys: the mean of maxima would be 1 between
  // them, the maximum of means is one half.
  HostTensor weights(DType::kF32, 2, 5);
  weights.set(0, 1, 1.0);
  weights.set(1, 3, 1.0);
  const PoolRecipe recipe{GroupReduce::kMean, Pool::kMax, 3};
  const HostTensor got = pool(weights, 1, recipe, {{0, 5}, {0, 5}, 5, 1});
  EXPECT_EQ(got.at(0, 2), 0.5);
}

// --- average_units ---

class AverageUnits : public BackendTest {};
TIDEKV_ON_EVERY_BACKEND(AverageUnits);

TEST_P(AverageUnits, IsTheMeanOfEachUnitAndOfTheShorterLast) {
  for (const std::int64_t unit_len : {1, 2, 10, 64}) {
    for (const std::int64_t len : {1, 9, 10, 11, 200}) {
      const HostTensor scores = random_.normals(DType::kF32, 3, len);
      const std::int64_t num_units = (len + unit_len - 1) / unit_len;
      const DeviceTensor averages = device_.garbage(DType::kF32, 3, num_units);
      const DeviceTensor from = device_.put(scores);
      backend().average_units(from.view, unit_len, averages.view);
      HostTensor wanted(DType::kF32, 3, num_units);
      for (std::int64_t row = 0; row < 3; ++row) {
        for (std::int64_t unit = 0; unit < num_units; ++unit) {
          const std::int64_t end = std::min(len, (unit + 1) * unit_len);
          float sum = 0.0F;  // in order, as every backend must
          for (std::int64_t i = unit * unit_len; i < end; ++i) {
            sum += static_cast<float>(scores.at(row, i));
          }
          const float mean = sum / static_cast<float>(end - unit * unit_len);
          wanted.set(row, unit, static_cast<double>(mean));
        }
      }
      EXPECT_TRUE(same_bits(device_.get(averages.view), wanted))
          << len << " in units of " << unit_len;
    }
  }
}

// --- topk_merge, count_ids, topk_take ---

// The k best of a head by sorting: higher score first, then lower position; NaN is -infinity.
std::vector<std::int32_t> best_by_sorting(const HostTensor& scores, std::int64_t head,
                                          std::int64_t k, std::int32_t first) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(scores.cols()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  const auto rank = [&](std::int64_t col) {
    const double score = scores.at(head, col);
    return std::isnan(score) ? -kInf : score;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return rank(a) > rank(b); });
  std::vector<std::int32_t> best;
  for (std::int64_t i = 0; i < k; ++i) {
    best.push_back(first + static_cast<std::int32_t>(order[static_cast<std::size_t>(i)]));
  }
  std::sort(best.begin(), best.end());
  return best;
}

// A list of `k` for every head.
using Lens = std::vector<std::int64_t>;

class TopK : public BackendTest {
 protected:
  // Offers all scores in blocks, behind `mandatory.num_sinks` positions, and takes the result: the
  // heads' lists one behind the other.
  HostTensor select(const HostTensor& scores, const Lens& lens, std::int64_t block,
                    const Backend::Mandatory& mandatory) {
    const std::int64_t total = std::accumulate(lens.begin(), lens.end(), std::int64_t{0});
    const DeviceTensor best = device_.garbage(DType::kF32, 1, total);
    const DeviceTensor positions = device_.garbage(DType::kI32, 1, total);
    TopKState state{best.view, positions.view, lens, 0};
    for (std::int64_t begin = 0; begin < scores.cols(); begin += block) {
      const std::int64_t len = std::min(block, scores.cols() - begin);
      const DeviceTensor offered = device_.put(cols_at(scores, begin, len));
      backend().topk_merge(offered.view, mandatory.num_sinks + begin, state);
      state.num_offered += len;
    }
    const DeviceTensor retained = device_.garbage(
        DType::kI32, 1, total + scores.rows() * (mandatory.num_sinks + mandatory.num_recent));
    backend().topk_take(state, mandatory, retained.view);
    return device_.get(retained.view);
  }

  static Backend::Mandatory around(const HostTensor& scores, std::int64_t sinks,
                                   std::int64_t recent) {
    return {sinks, recent, sinks + scores.cols() + recent};
  }

  static HostTensor wanted(const HostTensor& scores, const Lens& lens,
                           const Backend::Mandatory& mandatory) {
    std::vector<std::int64_t> all;
    for (std::int64_t head = 0; head < scores.rows(); ++head) {
      for (std::int64_t position = 0; position < mandatory.num_sinks; ++position) {
        all.push_back(position);
      }
      const auto first = static_cast<std::int32_t>(mandatory.num_sinks);
      const std::int64_t len = lens[static_cast<std::size_t>(head)];
      for (const std::int32_t position : best_by_sorting(scores, head, len, first)) {
        all.push_back(position);
      }
      for (std::int64_t i = mandatory.num_recent; i > 0; --i) {
        all.push_back(mandatory.prompt_len - i);
      }
    }
    HostTensor retained(DType::kI32, 1, static_cast<std::int64_t>(all.size()));
    for (std::size_t i = 0; i < all.size(); ++i) {
      retained.set(0, static_cast<std::int64_t>(i), static_cast<double>(all[i]));
    }
    return retained;
  }

  void expect_sorted_choice(const HostTensor& scores, const Lens& lens, std::int64_t block,
                            const Backend::Mandatory& mandatory) {
    ASSERT_TRUE(same_bits(select(scores, lens, block, mandatory), wanted(scores, lens, mandatory)))
        << "k " << lens[0] << " of " << scores.cols() << ", blocks of " << block;
  }
  void expect_sorted_choice(const HostTensor& scores, std::int64_t k, std::int64_t block,
                            const Backend::Mandatory& mandatory) {
    expect_sorted_choice(scores, Lens(static_cast<std::size_t>(scores.rows()), k), block,
                         mandatory);
  }
};
TIDEKV_ON_EVERY_BACKEND(TopK);

TEST_P(TopK, KeepsTheBestOfDistinctScoresForAnyPartition) {
  const HostTensor scores = random_.normals(DType::kF32, 3, 400);
  for (const std::int64_t k : {1, 2, 31, 64, 255, 399}) {
    for (const std::int64_t block : {1, 64, 257, 400}) {
      expect_sorted_choice(scores, k, block, around(scores, 0, 0));
    }
  }
}

TEST_P(TopK, BreaksTiesByLowerPositionForAnyPartition) {
  HostTensor scores(DType::kF32, 3, 300);
  for (std::int64_t col = 0; col < scores.cols(); ++col) {
    scores.set(0, col, 0.25);                                   // all equal
    scores.set(1, col, static_cast<double>(random_.below(3)));  // three levels
    scores.set(2, col, random_.below(2) == 0 ? 0.0 : -0.0);     // equal zeros
  }
  for (const std::int64_t k : {1, 17, 100, 299}) {
    for (const std::int64_t block : {1, 13, 64, 300}) {
      expect_sorted_choice(scores, k, block, around(scores, 4, 8));
    }
  }
}

TEST_P(TopK, RanksNanAsMinusInfinity) {
  HostTensor scores = random_.normals(DType::kF32, 2, 200);
  for (std::int64_t col = 0; col < scores.cols(); ++col) {
    if (random_.below(2) == 0) {
      scores.set(0, col, random_.below(2) == 0 ? kNan : -kInf);
    }
    scores.set(1, col, col % 5 == 0 ? -kInf : kNan);
  }
  scores.set(0, 150, kInf);
  for (const std::int64_t k : {1, 50, 150, 199, 200}) {
    for (const std::int64_t block : {1, 64, 200}) {
      expect_sorted_choice(scores, k, block, around(scores, 0, 3));
    }
  }
}

TEST_P(TopK, WithNoRoomKeepsOnlyMandatoryPositions) {
  const HostTensor scores = random_.normals(DType::kF32, 2, 90);
  expect_sorted_choice(scores, 0, 40, around(scores, 4, 6));
}

TEST_P(TopK, WithRoomForAllKeepsAll) {
  const HostTensor scores = random_.normals(DType::kF32, 2, 90);
  const Backend::Mandatory mandatory = around(scores, 4, 6);
  const HostTensor retained = select(scores, {90, 90}, 32, mandatory);
  for (std::int64_t head = 0; head < 2; ++head) {
    for (std::int64_t position = 0; position < 100; ++position) {
      ASSERT_EQ(retained.at(0, head * 100 + position), static_cast<double>(position));
    }
  }
}

TEST_P(TopK, SortedInputInEitherDirectionIsNoSpecialCase) {
  HostTensor scores(DType::kF32, 2, 500);
  for (std::int64_t col = 0; col < scores.cols(); ++col) {
    scores.set(0, col, static_cast<double>(col));
    scores.set(1, col, -static_cast<double>(col));
  }
  for (const std::int64_t k : {1, 100, 499}) {
    expect_sorted_choice(scores, k, 128, around(scores, 2, 2));
  }
}

TEST_P(TopK, RandomSizesScoresAndPartitionsAgreeWithSorting) {
  for (int trial = 0; trial < 60; ++trial) {
    const std::int64_t len = 1 + random_.below(300);
    const std::int64_t levels = 1 + random_.below(50);
    HostTensor scores(DType::kF32, 1 + random_.below(3), len);
    for (std::int64_t row = 0; row < scores.rows(); ++row) {
      for (std::int64_t col = 0; col < len; ++col) {
        scores.set(row, col, static_cast<double>(random_.below(levels)) * 0.1 - 1.0);
      }
    }
    Lens lens;
    for (std::int64_t head = 0; head < scores.rows(); ++head) {
      lens.push_back(random_.below(len + 1));
    }
    const std::int64_t block = 1 + random_.below(len);
    expect_sorted_choice(scores, lens, block, around(scores, random_.below(5), random_.below(5)));
  }
}

// All heads in one list: ids beyond one head's positions, offered one head after the other.
TEST_P(TopK, OneListForAllHeadsTellsHowManyOfTheBestEachHas) {
  constexpr std::int64_t kHeads = 3;
  constexpr std::int64_t kLen = 70;
  for (const std::int64_t k : {1, 50, 200}) {
    HostTensor scores = random_.normals(DType::kF32, kHeads, kLen);
    scores.set(1, 5, kNan);
    const Lens lens = {k};
    const DeviceTensor best = device_.garbage(DType::kF32, 1, k);
    const DeviceTensor ids = device_.garbage(DType::kI32, 1, k);
    const DeviceTensor counts = device_.garbage(DType::kI32, 1, kHeads);
    TopKState state{best.view, ids.view, lens, 0};
    HostTensor flat(DType::kF32, 1, kHeads * kLen);
    for (std::int64_t head = 0; head < kHeads; ++head) {
      const DeviceTensor offered = device_.put(scores.rows_at(head, 1));
      backend().topk_merge(offered.view, head * kLen, state);
      state.num_offered += kLen;
      for (std::int64_t i = 0; i < kLen; ++i) {
        flat.set(0, head * kLen + i, scores.at(head, i));
      }
    }
    backend().count_ids(ids.view, kLen, counts.view);
    HostTensor wanted(DType::kI32, 1, kHeads);
    for (const std::int32_t id : best_by_sorting(flat, 0, k, 0)) {
      wanted.set(0, id / kLen, wanted.at(0, id / kLen) + 1);
    }
    EXPECT_TRUE(same_bits(device_.get(counts.view), wanted)) << "k " << k;
  }
}

}  // namespace
}  // namespace tidekv::conformance
