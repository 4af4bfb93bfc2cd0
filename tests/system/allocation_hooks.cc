#include "system/allocation_hooks.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::int64_t> countdown{-1};  // allocations left before one fails; negative: never
std::atomic<bool> counting{false};
std::atomic<std::int64_t> news{0};
std::atomic<std::int64_t> mallocs{0};
std::atomic<std::int64_t> mmaps{0};
std::atomic<std::int64_t> live{0};

void count(std::atomic<std::int64_t>& counter) {
  if (counting.load(std::memory_order_relaxed)) {
    counter.fetch_add(1, std::memory_order_relaxed);
  }
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  count(news);
  if (countdown.load() >= 0 && countdown.fetch_sub(1) == 0) {
    throw std::bad_alloc();
  }
  const std::size_t size = bytes == 0 ? 1 : bytes;
  void* data = alignment <= alignof(std::max_align_t)
                   ? std::malloc(size)
                   : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (data == nullptr) {
    throw std::bad_alloc();
  }
  live.fetch_add(1);
  return data;
}

void* allocate_or_null(std::size_t bytes) noexcept {
  try {
    return allocate(bytes, 0);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void release(void* data) {
  if (data != nullptr) {
    live.fetch_sub(1);
    std::free(data);
  }
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, 0); }
void* operator new[](std::size_t bytes) { return allocate(bytes, 0); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes);
}
void operator delete(void* data, const std::nothrow_t&) noexcept { release(data); }
void operator delete[](void* data, const std::nothrow_t&) noexcept { release(data); }
void operator delete(void* data) noexcept { release(data); }
void operator delete[](void* data) noexcept { release(data); }
void operator delete(void* data, std::size_t) noexcept { release(data); }
void operator delete[](void* data, std::size_t) noexcept { release(data); }
void operator delete(void* data, std::align_val_t) noexcept { release(data); }
void operator delete[](void* data, std::align_val_t) noexcept { release(data); }
void operator delete(void* data, std::size_t, std::align_val_t) noexcept { release(data); }
void operator delete[](void* data, std::size_t, std::align_val_t) noexcept { release(data); }

#ifdef TIDEKV_HOOK_MALLOC
// glibc's own entry points, so that these can be replaced without losing the heap.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* data, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  count(mallocs);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t number, std::size_t bytes) {
  count(mallocs);
  return __libc_calloc(number, bytes);
}
void* realloc(void* data, std::size_t bytes) {
  count(mallocs);
  return __libc_realloc(data, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  count(mallocs);
  return __libc_memalign(alignment, bytes);
}
void* mmap(void* address, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  count(mmaps);
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}
}
#endif

namespace tidekv::testing {

NewFailsAt::NewFailsAt(std::int64_t fail_at) { countdown.store(fail_at); }
NewFailsAt::~NewFailsAt() { countdown.store(-1); }
bool NewFailsAt::happened() const { return countdown.load() < 0; }

void start_counting() {
  news.store(0);
  mallocs.store(0);
  mmaps.store(0);
  counting.store(true);
}

AllocationCounts stop_counting() {
  counting.store(false);
  return {news.load(), mallocs.load(), mmaps.load()};
}

std::int64_t live_allocations() { return live.load(); }

}  // namespace tidekv::testing
