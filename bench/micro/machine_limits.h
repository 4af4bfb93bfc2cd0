// What the machine can do at best right now, with the threads the operations have: arithmetic from
// registers, and reading from memory. Measured beside every operation, because other programs may
// share the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "peak_loops.h"

namespace tidekv::micro {

class Limits {
 public:
  // Tries every loop, 0.05 s each. `stream_bytes`: the buffer that is read; far larger than any
  // cache.
  Limits(ThreadPool& pool, std::int64_t stream_bytes);

  // Floating-point operations a second in the best loop, measured for about `seconds`.
  double arithmetic(double seconds);
  // Bytes a second, measured over the next part of the buffer, for about `seconds`.
  double bandwidth(double seconds);

  std::string_view best_loop() const { return best_->name; }
  // Every loop this machine can run, and its best rate when all were tried.
  const std::vector<std::pair<std::string_view, double>>& loops() const { return loops_; }

 private:
  void find_best_loop();
  double rate_of(const PeakLoop& loop, double seconds);
  void read_pages(std::int64_t first, std::int64_t count);

  struct FreePages {
    void operator()(std::uint64_t* pages) const;
  };

  ThreadPool* pool_;
  const PeakLoop* best_ = nullptr;
  double iteration_seconds_ = 1e-8;  // of the loop that ran last
  double page_seconds_ = 1e-4;       // of the last read
  std::vector<std::pair<std::string_view, double>> loops_;
  std::unique_ptr<std::uint64_t[], FreePages> pages_;
  std::int64_t num_pages_ = 0;
  std::int64_t next_page_ = 0;
  std::vector<std::uint64_t> sums_;  // one a page, so that no read can be left out
};

}  // namespace tidekv::micro
