#include "machine_limits.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <new>

namespace tidekv::micro {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kPageBytes = std::int64_t{1} << 20;  // of one task
constexpr std::int64_t kPageWords = kPageBytes / 8;
constexpr std::int64_t kTasksPerThread = 8;  // so that a thread that is held up delays little

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Sixteen sums: no addition waits for the one before it.
std::uint64_t sum_of(const std::uint64_t* words) {
  constexpr std::int64_t kSums = 16;
  std::uint64_t sums[kSums] = {};
  for (std::int64_t i = 0; i < kPageWords; i += kSums) {
    for (std::int64_t s = 0; s < kSums; ++s) {
      sums[s] += words[i + s];
    }
  }
  std::uint64_t total = 0;
  for (const std::uint64_t sum : sums) {
    total += sum;
  }
  return total;
}

}  // namespace

void Limits::FreePages::operator()(std::uint64_t* pages) const { std::free(pages); }

Limits::Limits(ThreadPool& pool, std::int64_t stream_bytes)
    : pool_(&pool),
      num_pages_(std::max(kTasksPerThread * pool.num_threads(), stream_bytes / kPageBytes)) {
  constexpr std::size_t kLargePage = std::size_t{2} << 20;
  const auto bytes = static_cast<std::size_t>(num_pages_ * kPageBytes);
  const std::size_t rounded = (bytes + kLargePage - 1) / kLargePage * kLargePage;
  pages_.reset(static_cast<std::uint64_t*>(std::aligned_alloc(kLargePage, rounded)));
  if (pages_ == nullptr) {
    throw std::bad_alloc();
  }
  ::madvise(pages_.get(), rounded, MADV_HUGEPAGE);  // fewer page walks, where the system can
  sums_.resize(static_cast<std::size_t>(num_pages_));
  pool_->parallel_for(num_pages_, [&](std::int64_t page, int) {
    std::fill_n(pages_.get() + page * kPageWords, kPageWords, static_cast<std::uint64_t>(page));
  });
  find_best_loop();
}

void Limits::find_best_loop() {
  constexpr int kTries = 4;
  constexpr double kTrySeconds = 0.0125;
  for (const PeakLoop& loop : peak_loops()) {
    if (!loop.available()) {
      continue;
    }
    double best = 0;
    iteration_seconds_ = 1e-8;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      best = std::max(best, rate_of(loop, kTrySeconds));
    }
    if (loops_.empty() || best > loops_.front().second) {
      best_ = &loop;
      loops_.insert(loops_.begin(), {loop.name, best});
    } else {
      loops_.emplace_back(loop.name, best);
    }
  }
  iteration_seconds_ = 1e-8;
  arithmetic(kTrySeconds);  // learns how long an iteration of the best loop takes
}

double Limits::rate_of(const PeakLoop& loop, double seconds) {
  const std::int64_t num_tasks = kTasksPerThread * pool_->num_threads();
  const auto iterations = std::max<std::int64_t>(
      1000, static_cast<std::int64_t>(seconds / iteration_seconds_ / kTasksPerThread));
  const Clock::time_point start = Clock::now();
  pool_->parallel_for(num_tasks, [&](std::int64_t, int) { loop.run(iterations); });
  const double spent = seconds_since(start);
  const auto all = static_cast<double>(num_tasks * iterations);
  iteration_seconds_ = spent * pool_->num_threads() / all;
  return all * loop.flops / spent;
}

double Limits::arithmetic(double seconds) { return rate_of(*best_, seconds); }

void Limits::read_pages(std::int64_t first, std::int64_t count) {
  pool_->parallel_for(count, [&](std::int64_t task, int) {
    const std::int64_t page = (first + task) % num_pages_;
    sums_[static_cast<std::size_t>(page)] = sum_of(pages_.get() + page * kPageWords);
  });
}

double Limits::bandwidth(double seconds) {
  const std::int64_t count =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(seconds / page_seconds_),
                               kTasksPerThread * pool_->num_threads(), num_pages_);
  const Clock::time_point start = Clock::now();
  read_pages(next_page_, count);
  const double spent = seconds_since(start);
  asm volatile("" : : "m"(sums_[0]) : "memory");  // the sums are wanted
  next_page_ = (next_page_ + count) % num_pages_;
  page_seconds_ = spent / static_cast<double>(count);
  return static_cast<double>(count * kPageBytes) / spent;
}

}  // namespace tidekv::micro
