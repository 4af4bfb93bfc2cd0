// What a cache beside the device needs: a pool that transfers reach, and attention of some heads.
#include <gtest/gtest.h>

#include "conformance/device.h"

namespace tidekv::conformance {
namespace {

class Offloading : public BackendTest {};
TIDEKV_ON_EVERY_BACKEND(Offloading);

TEST_P(Offloading, RowsComeBackFromThePoolAsTheyWentAndAreCounted) {
  const HostTensor rows = random_.normals(DType::kBF16, 9, 40);
  const DeviceTensor from = device_.put(rows);
  const DeviceTensor to = device_.garbage(DType::kBF16, 5, 40);
  const Result<PoolView> pool = backend().open_pool(DType::kBF16, 20, 40);
  ASSERT_TRUE(pool.ok());
  EXPECT_EQ(backend().pool().peak_bytes, 20 * 40 * 2);
  backend().store(from.view, pool.value().rows_at(3, 9));
  backend().load(pool.value().rows_at(5, 5), to.view);
  EXPECT_TRUE(same_bits(device_.get(to.view), rows.rows_at(2, 5)));
  EXPECT_EQ(backend().pool().down, (Transfers{9 * 40 * 2, 1}));
  EXPECT_EQ(backend().pool().up, (Transfers{5 * 40 * 2, 1}));
  HostTensor seen(DType::kBF16, 9, 40);
  backend().download(pool.value().rows_at(3, 9), seen.bytes());
  EXPECT_TRUE(same_bits(seen, rows));
  EXPECT_EQ(backend().pool().up, (Transfers{5 * 40 * 2, 1}));
}

// Each head alone, a pair, and the rest: only their columns change, to the bits that all at once
// give.
TEST_P(Offloading, SomeHeadsAttendAsTheyDoAmongAll) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const std::int64_t rows : {1, 13, 200}) {
      const std::vector<std::int64_t> lens = {600, 600, 600, 600, 600};
      const AttentionCase made =
          attention_case(random_, dtype, {5, 3, 64}, lens, rows, Inputs::kPlain);
      for (const Phase phase : kPhases) {
        const HostTensor all = device_.attend(made.q, made.kv, phase);
        const DeviceTensor q = device_.put(made.q);
        const DeviceKv cache = device_.put(made.kv);
        std::int64_t first = 0;
        for (const std::int64_t count : {1, 2, 1, 1}) {
          KvView some = cache.view();
          some.heads =
              some.heads.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
          some.first_head = first;
          some.num_all_heads = 5;
          const HostTensor before = device_.get(q.view);
          backend().attend(q.view, some, {.phase = phase});
          const HostTensor after = device_.get(q.view);
          for (std::int64_t col = 0; col < all.cols(); ++col) {
            const std::int64_t head = col / (3 * 64);
            const bool attended = head >= first && head < first + count;
            for (std::int64_t row = 0; row < rows; ++row) {
              ASSERT_EQ(after.at(row, col), (attended ? all : before).at(row, col))
                  << "head " << head << " of " << count << " from " << first;
            }
          }
          first += count;
        }
      }
    }
  }
}

// Head by head, one room for the scores of each in turn.
TEST_P(Offloading, AHeadAloneHoldsAndLeavesWhatItDoesAmongAll) {
  constexpr std::int64_t kHeads = 3;
  constexpr std::int64_t kGroup = 2;
  constexpr std::int64_t kRows = 13;
  constexpr std::int64_t kLen = 300;
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const AttentionCase made = attention_case(random_, dtype, {kHeads, kGroup, 64},
                                              {kLen, kLen, kLen}, kRows, Inputs::kPlain);
    const Attended all = device_.attend_and_look(made.q, made.kv, Held::kScores, 5);
    const DeviceTensor q = device_.put(made.q);
    const DeviceKv cache = device_.put(made.kv);
    const DeviceTensor mask = device_.put(all.mask);
    const DeviceTensor scores = device_.garbage(DType::kF32, kGroup * kRows, kLen);
    const DeviceTensor weights = device_.garbage(DType::kF32, kGroup * kRows, kLen);
    const DeviceTensor lse = device_.garbage(DType::kF32, 2 * kHeads * kGroup, 7);
    for (std::int64_t head = 0; head < kHeads; ++head) {
      KvView alone = cache.view();
      alone.heads = alone.heads.subspan(static_cast<std::size_t>(head), 1);
      alone.first_head = head;
      alone.num_all_heads = kHeads;
      backend().attend(q.view, alone,
                       {.mask = mask.view,
                        .scores = scores.view,
                        .weights = weights.view,
                        .lse = {lse.view, 1, 5}});
      const HostTensor held = device_.get(scores.view);
      for (std::int64_t entry = 0; entry < held.rows() * kLen; ++entry) {
        const std::int64_t among_all = head * held.rows() * kLen + entry;
        ASSERT_EQ(held.at(entry / kLen, entry % kLen),
                  all.scores.at(among_all / all.scores.cols(), among_all % all.scores.cols()))
            << "head " << head << ", entry " << entry;
      }
    }
    EXPECT_TRUE(same_bits(device_.get(q.view), all.out));
    EXPECT_TRUE(same_bits(device_.get(lse.view), all.lse));
  }
}

}  // namespace
}  // namespace tidekv::conformance
