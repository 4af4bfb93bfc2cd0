// Fixed threads, one parallel_for.
//
// The calling thread works too, so a pool of n runs n - 1 threads. No allocation after
// construction: the body is passed by reference. One parallel_for at a time per pool: a second
// caller waits. A thread without work looks for it for some microseconds, then sleeps: a generated
// token is hundreds of short parallel_fors, and waking a sleeping thread takes as long as one.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace tidekv {

class ThreadPool {
 public:
  // `num_threads` >= 1, the caller included.
  explicit ThreadPool(int num_threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(task, thread) once for every task in [0, num_tasks), thread in [0, num_threads()).
  // Tasks are handed out one by one in ascending order; returns when all have finished.
  template <typename Body>
  void parallel_for(std::int64_t num_tasks, const Body& body) {
    run(num_tasks, &body, [](const void* context, std::int64_t task, int thread) {
      (*static_cast<const Body*>(context))(task, thread);
    });
  }

 private:
  using Call = void (*)(const void* context, std::int64_t task, int thread);

  void run(std::int64_t num_tasks, const void* context, Call call);
  void worker_loop(int thread);
  void stop();  // ends and joins the threads
  void take_tasks(int thread);

  std::mutex caller_mutex_;  // held for the length of one parallel_for
  std::mutex mutex_;         // guards what follows
  std::condition_variable start_;
  std::condition_variable finished_;
  std::atomic<std::uint64_t> generation_{0};  // written under mutex_, after what it announces
  std::atomic<int> running_{0};
  std::atomic<bool> stopping_{false};
  std::int64_t num_tasks_ = 0;
  const void* context_ = nullptr;
  Call call_ = nullptr;
  std::atomic<std::int64_t> next_task_{0};
  std::vector<std::thread> workers_;
};

// A request to stop that cannot be taken back: once the caller's flag was seen true it stays true
// here, so that nothing runs on data which a skipped task left unwritten.
class CancelLatch {
 public:
  // `flag` may be null (never cancelled) and outlives the latch.
  explicit CancelLatch(const std::atomic<bool>* flag) : flag_(flag) {}

  bool cancelled() const {
    if (flag_ != nullptr && flag_->load(std::memory_order_relaxed)) {
      latched_.store(true, std::memory_order_relaxed);
    }
    return latched_.load(std::memory_order_relaxed);
  }

 private:
  const std::atomic<bool>* flag_;
  mutable std::atomic<bool> latched_{false};
};

// One request's use of a pool: the same parallel_for, and a way to give up. Tasks that have not
// begun when the request is cancelled are skipped; what they would have written is undefined.
class TaskRunner {
 public:
  TaskRunner(ThreadPool& pool, const CancelLatch& cancel) : pool_(&pool), cancel_(&cancel) {}

  int num_threads() const { return pool_->num_threads(); }

  template <typename Body>
  void parallel_for(std::int64_t num_tasks, const Body& body) const {
    pool_->parallel_for(num_tasks, [&](std::int64_t task, int thread) {
      if (!cancel_->cancelled()) {
        body(task, thread);
      }
    });
  }

 private:
  ThreadPool* pool_;
  const CancelLatch* cancel_;
};

// Threads to use when nobody says: the CPUs this process may run on.
int default_num_threads();

}  // namespace tidekv
