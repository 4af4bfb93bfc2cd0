#include "backend/cpu/arena.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/checked_math.h"

#if defined(__SANITIZE_ADDRESS__)
#define TIDEKV_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TIDEKV_ASAN 1
#endif
#endif

#ifdef TIDEKV_ASAN
#include <sanitizer/asan_interface.h>
#endif

namespace tidekv::cpu {
namespace {

constexpr std::size_t kAlignment = 64;

void poison([[maybe_unused]] std::byte* data, [[maybe_unused]] std::int64_t bytes) {
#ifdef TIDEKV_ASAN
  __asan_poison_memory_region(data, static_cast<std::size_t>(bytes));
#endif
}

void unpoison([[maybe_unused]] std::byte* data, [[maybe_unused]] std::int64_t bytes) {
#ifdef TIDEKV_ASAN
  __asan_unpoison_memory_region(data, static_cast<std::size_t>(bytes));
#endif
}

// Makes a read of bytes nobody wrote show as NaN.
void fill_with_nan([[maybe_unused]] std::byte* data, [[maybe_unused]] std::int64_t bytes) {
#ifndef NDEBUG
  if (bytes > 0) {
    std::memset(data, 0xFF, static_cast<std::size_t>(bytes));
  }
#endif
}

Error out_of_memory(std::int64_t bytes, int error) {
  return {ErrorCode::kOutOfMemory, "out of memory: the system refused " + std::to_string(bytes) +
                                       " bytes (" + std::strerror(error) + ")"};
}

}  // namespace

Arena::~Arena() {
  if (base_ != nullptr) {
    unpoison(base_, bytes_);  // the address may be mapped again by others
    munmap(base_, static_cast<std::size_t>(bytes_));
  }
}

Status Arena::reserve(std::int64_t bytes) {
  TIDEKV_CHECK(base_ == nullptr);
  if (bytes == 0) {
    return Ok{};
  }
  void* mapped = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    return out_of_memory(bytes, errno);
  }
  base_ = static_cast<std::byte*>(mapped);
  bytes_ = bytes;
  poison(base_, bytes_);
  return Ok{};
}

std::byte* Arena::place(std::int64_t offset, std::int64_t bytes) {
  TIDEKV_CHECK_OP(offset, >=, 0);
  TIDEKV_CHECK_OP(offset + bytes, <=, bytes_);
  std::byte* data = base_ + offset;
  unpoison(data, bytes);
  fill_with_nan(data, bytes);
  return data;
}

void Arena::release_placed(std::byte* data, std::int64_t bytes) {
  fill_with_nan(data, bytes);
  poison(data, bytes);
}

Result<std::byte*> Arena::allocate(std::int64_t bytes) {
  const std::int64_t size = round_up(bytes == 0 ? 1 : bytes, std::int64_t{kAlignment});
  void* data = std::aligned_alloc(kAlignment, static_cast<std::size_t>(size));
  if (data == nullptr) {
    return out_of_memory(bytes, ENOMEM);
  }
  fill_with_nan(static_cast<std::byte*>(data), bytes);
  return static_cast<std::byte*>(data);
}

void Arena::release_allocated(std::byte* data, std::int64_t bytes) {
  fill_with_nan(data, bytes);
  std::free(data);
}

}  // namespace tidekv::cpu
