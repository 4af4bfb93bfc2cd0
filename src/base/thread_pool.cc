#include "base/thread_pool.h"

#include <sched.h>

#include <chrono>

#include "base/check.h"

namespace tidekv {
namespace {

// Tells the processor that this thread waits.
void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Looks for some microseconds.
template <typename Condition>
bool comes_true_soon(const Condition& condition) {
  constexpr std::chrono::microseconds kPatience{50};
  constexpr int kLooksPerClock = 16;
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    for (int look = 0; look < kLooksPerClock; ++look) {
      if (condition()) {
        return true;
      }
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) {
  TIDEKV_CHECK_OP(num_threads, >=, 1);
  workers_.reserve(static_cast<std::size_t>(num_threads - 1));
  try {
    for (int thread = 1; thread < num_threads; ++thread) {
      workers_.emplace_back([this, thread] { worker_loop(thread); });
    }
  } catch (...) {  // no memory or no thread left: those that run must not outlive the pool
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

void ThreadPool::run(std::int64_t num_tasks, const void* context, Call call) {
  if (num_tasks <= 0) {
    return;
  }
  const std::lock_guard caller(caller_mutex_);
  if (workers_.empty() || num_tasks == 1) {
    for (std::int64_t task = 0; task < num_tasks; ++task) {
      call(context, task, 0);
    }
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    num_tasks_ = num_tasks;
    context_ = context;
    call_ = call;
    next_task_.store(0, std::memory_order_relaxed);
    running_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
  }
  start_.notify_all();
  take_tasks(0);
  const auto finished = [this] { return running_.load(std::memory_order_acquire) == 0; };
  if (!comes_true_soon(finished)) {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, finished);
  }
}

void ThreadPool::take_tasks(int thread) {
  for (;;) {
    const std::int64_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= num_tasks_) {
      return;
    }
    call_(context_, task, thread);
  }
}

void ThreadPool::worker_loop(int thread) {
  std::uint64_t seen = 0;
  for (;;) {
    const auto called = [this, seen] {
      return stopping_.load(std::memory_order_relaxed) ||
             generation_.load(std::memory_order_acquire) != seen;
    };
    if (!comes_true_soon(called)) {
      std::unique_lock lock(mutex_);
      start_.wait(lock, called);
    }
    if (stopping_.load(std::memory_order_relaxed)) {
      return;
    }
    ++seen;
    take_tasks(thread);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      // Not before the caller, if it found threads running, sleeps.
      const std::lock_guard lock(mutex_);
      finished_.notify_one();
    }
  }
}

int default_num_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    return CPU_COUNT(&set) > 0 ? CPU_COUNT(&set) : 1;
  }
  return 1;
}

}  // namespace tidekv
