// Counts and refuses heap allocations of this test program. Linking allocation_hooks.cc replaces
// the global operator new and delete, and, outside sanitizer builds, malloc and mmap.
#pragma once

#include <cstdint>

namespace tidekv::testing {

// While alive: operator new number `fail_at` (from 0) of any thread throws std::bad_alloc.
class NewFailsAt {
 public:
  explicit NewFailsAt(std::int64_t fail_at);
  NewFailsAt(const NewFailsAt&) = delete;
  NewFailsAt& operator=(const NewFailsAt&) = delete;
  ~NewFailsAt();
  bool happened() const;
};

struct AllocationCounts {
  std::int64_t operator_new = 0;
  std::int64_t malloc = 0;  // calloc, realloc and aligned_alloc too
  std::int64_t mmap = 0;
};

// Starts counting from zero.
void start_counting();
// Stops, and tells what was called since.
AllocationCounts stop_counting();

// operator new calls minus operator delete calls so far.
std::int64_t live_allocations();

}  // namespace tidekv::testing
