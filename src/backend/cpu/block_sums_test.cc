#include "backend/cpu/block_sums.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kParts[] = {1, 2};
constexpr int kThreads[] = {1, 2, 3, 8, 64};

TEST(BlockShape, FitsTheScratchOfAThreadWhateverTheProduct) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const auto rows = static_cast<std::int64_t>(1 + random() % 5000);
    const auto cols = static_cast<std::int64_t>(1 + random() % (i % 10 == 0 ? 200'000 : 5000));
    for (const std::int64_t parts : kParts) {
      for (const int threads : kThreads) {
        const BlockShape shape = block_shape(rows, cols, parts, threads);
        ASSERT_LE(shape.rows, kBlockRows);
        ASSERT_EQ(shape.rows % kStripRows, 0);
        ASSERT_GT(shape.cols, 0);
        ASSERT_EQ(shape.cols % kPanelCols, 0);
        ASSERT_LE(std::min(rows, shape.rows) * shape.cols * parts, kBlockSums)
            << rows << " x " << cols << ", " << parts << " parts, " << threads << " threads";
      }
    }
  }
}

TEST(BlockShape, GivesEveryThreadWorkWhereThereAreColumnsForIt) {
  for (const int threads : kThreads) {
    const std::int64_t cols = kPanelCols * threads;
    const BlockShape shape = block_shape(1, cols, 1, threads);
    EXPECT_EQ(shape.cols, kPanelCols) << threads;
  }
}

TEST(BlockShape, CutsRowsWhereColumnsAreFew) {
  const BlockShape shape = block_shape(kBlockRows, 2 * kPanelCols, 1, 8);
  EXPECT_LE(shape.rows, kBlockRows / 4);
}

}  // namespace
}  // namespace tidekv::cpu
