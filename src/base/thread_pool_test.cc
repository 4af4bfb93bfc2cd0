#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

namespace {
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): operator new counts here
std::atomic<std::int64_t> num_news{0};
// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): and refuses here
std::atomic<std::int64_t> refused_new{-1};
}  // namespace

// Counts allocations of this test program; the pool promises none after construction. Kept out of
// line: inlined halves of a new and a delete look mismatched to the compiler.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  if (num_news.fetch_add(1, std::memory_order_relaxed) != refused_new.load()) {
    if (void* data = std::malloc(bytes == 0 ? 1 : bytes)) {
      return data;
    }
  }
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* data) noexcept { std::free(data); }
[[gnu::noinline]] void operator delete(void* data, std::size_t /*bytes*/) noexcept {
  std::free(data);
}

namespace tidekv {
namespace {

class ThreadPoolOf : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolOf, RunsEveryTaskExactlyOnce) {
  ThreadPool pool(GetParam());
  for (const std::int64_t num_tasks : {1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(num_tasks));
    pool.parallel_for(num_tasks,
                      [&](std::int64_t task, int) { ++runs[static_cast<std::size_t>(task)]; });
    for (const std::atomic<int>& count : runs) {
      ASSERT_EQ(count.load(), 1) << num_tasks << " tasks";
    }
  }
}

TEST_P(ThreadPoolOf, NeverRunsTwoTasksUnderOneThreadNumberAtOnce) {
  ThreadPool pool(GetParam());
  std::vector<std::atomic<int>> inside(static_cast<std::size_t>(GetParam()));
  std::atomic<int> violations{0};
  pool.parallel_for(500, [&](std::int64_t, int thread) {
    if (thread < 0 || thread >= GetParam()) {
      ++violations;
      return;
    }
    std::atomic<int>& mine = inside[static_cast<std::size_t>(thread)];
    violations += mine.fetch_add(1) != 0;
    std::this_thread::yield();
    mine.fetch_sub(1);
  });
  EXPECT_EQ(violations.load(), 0);
}

TEST_P(ThreadPoolOf, SeesWritesOfItsTasksAfterEveryOneOfManyCalls) {
  ThreadPool pool(GetParam());
  std::vector<std::int64_t> values(97, 0);  // plain integers: the pool must order the accesses
  for (int round = 1; round <= 100; ++round) {
    pool.parallel_for(static_cast<std::int64_t>(values.size()),
                      [&](std::int64_t task, int) { values[static_cast<std::size_t>(task)] += 1; });
    for (const std::int64_t value : values) {
      ASSERT_EQ(value, round);
    }
  }
}

TEST_P(ThreadPoolOf, ServesSeveralCallersOneAfterAnother) {
  ThreadPool pool(GetParam());
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> callers;
  callers.reserve(3);
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        pool.parallel_for(10, [&](std::int64_t task, int) { sum += task; });
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(sum.load(), 3 * 20 * 45);
}

TEST_P(ThreadPoolOf, AllocatesNothingAfterConstruction) {
  ThreadPool pool(GetParam());
  std::atomic<std::int64_t> sum{0};
  pool.parallel_for(100, [&](std::int64_t task, int) { sum += task; });
  const std::int64_t before = num_news.load();
  for (int round = 0; round < 20; ++round) {
    pool.parallel_for(100, [&](std::int64_t task, int) { sum += task; });
  }
  EXPECT_EQ(num_news.load(), before);
  EXPECT_EQ(sum.load(), 21 * 4950);
}

TEST_P(ThreadPoolOf, IgnoresAnEmptyRange) {
  ThreadPool pool(GetParam());
  int calls = 0;
  pool.parallel_for(0, [&](std::int64_t, int) { ++calls; });
  pool.parallel_for(-3, [&](std::int64_t, int) { ++calls; });
  EXPECT_EQ(calls, 0);
}

TEST_P(ThreadPoolOf, CountsTheCaller) {
  EXPECT_EQ(ThreadPool(GetParam()).num_threads(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolOf, testing::Values(1, 2, 3, 5));

// A thread still running when its std::thread is destroyed would end the program.
TEST(ThreadPool, JoinsTheThreadsItHasWhenOneCannotBeStarted) {
  constexpr int kNumThreads = 5;
  const std::int64_t before = num_news.load();
  { const ThreadPool pool(kNumThreads); }
  const std::int64_t needed = num_news.load() - before;
  ASSERT_GE(needed, kNumThreads);  // the list, and each thread's start
  for (std::int64_t nth = 0; nth < needed; ++nth) {
    bool refused = false;
    refused_new = num_news.load() + nth;
    try {
      const ThreadPool pool(kNumThreads);
    } catch (const std::bad_alloc&) {
      refused = true;
    }
    refused_new = -1;
    EXPECT_TRUE(refused) << "operator new " << nth;
  }
}

TEST(ThreadPool, RunsInAscendingOrderOnOneThread) {
  ThreadPool pool(1);
  std::vector<std::int64_t> order;
  pool.parallel_for(5, [&](std::int64_t task, int) { order.push_back(task); });
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST(ThreadPool, SharesWorkBetweenThreads) {
  ThreadPool pool(2);
  std::atomic<int> arrived{0};
  // Each task waits for the other: one thread alone would never finish.
  pool.parallel_for(2, [&](std::int64_t, int) {
    ++arrived;
    while (arrived.load() < 2) {
      std::this_thread::yield();
    }
  });
  EXPECT_EQ(arrived.load(), 2);
}

TEST(CancelLatch, StaysSetOnceTheFlagWasSeen) {
  std::atomic<bool> flag{false};
  const CancelLatch latch(&flag);
  EXPECT_FALSE(latch.cancelled());
  flag = true;
  EXPECT_TRUE(latch.cancelled());
  flag = false;
  EXPECT_TRUE(latch.cancelled());
}

TEST(CancelLatch, WithoutAFlagIsNeverSet) { EXPECT_FALSE(CancelLatch(nullptr).cancelled()); }

TEST(TaskRunner, SkipsExactlyTheTasksNotBegunWhenCancelled) {
  ThreadPool pool(1);
  std::atomic<bool> flag{false};
  const CancelLatch latch(&flag);
  const TaskRunner tasks(pool, latch);
  std::vector<std::int64_t> ran;
  tasks.parallel_for(10, [&](std::int64_t task, int) {
    ran.push_back(task);
    flag = task == 3;
  });
  EXPECT_EQ(ran, (std::vector<std::int64_t>{0, 1, 2, 3}));
  tasks.parallel_for(10, [&](std::int64_t task, int) { ran.push_back(task); });
  EXPECT_EQ(ran.size(), 4U);
}

TEST(TaskRunner, RunsEveryTaskWhenNobodyCancels) {
  ThreadPool pool(3);
  const CancelLatch latch(nullptr);
  std::atomic<std::int64_t> sum{0};
  TaskRunner(pool, latch).parallel_for(100, [&](std::int64_t task, int) { sum += task; });
  EXPECT_EQ(sum.load(), 4950);
}

TEST(DefaultNumThreads, IsAtLeastOneAndAtMostTheMachine) {
  EXPECT_GE(default_num_threads(), 1);
  EXPECT_LE(default_num_threads(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace tidekv
