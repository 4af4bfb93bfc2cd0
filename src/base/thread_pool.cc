#include "base/thread_pool.h"

#include <sched.h>

#include "base/check.h"

namespace tidekv {

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
    running_ = static_cast<int>(workers_.size());
    ++generation_;
  }
  start_.notify_all();
  take_tasks(0);
  std::unique_lock lock(mutex_);
  finished_.wait(lock, [this] { return running_ == 0; });
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
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [this, seen] { return stopping_ || generation_ != seen; });
      if (stopping_) {
        return;
      }
      seen = generation_;
    }
    take_tasks(thread);
    bool last = false;
    {
      const std::lock_guard lock(mutex_);
      last = --running_ == 0;
    }
    if (last) {
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
