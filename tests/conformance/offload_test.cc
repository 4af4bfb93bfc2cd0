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

}  // namespace
}  // namespace tidekv::conformance
