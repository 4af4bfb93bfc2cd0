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

constexpr std::int64_t kAlignment = 64;
// Of a huge page on x86-64 and on AArch64 with pages of 4 KiB. Elsewhere the alignment does no
// harm.
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

// Asks for huge pages: a product walks far more small ones than a TLB holds, and a guest of a
// virtual machine pays for every miss twice. A system that gives none is only slower.
void prefer_huge_pages([[maybe_unused]] std::byte* data, [[maybe_unused]] std::int64_t bytes) {
#ifdef MADV_HUGEPAGE
  madvise(data, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);
#endif
}

std::byte* round_up_to_huge_page(std::byte* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  const auto page = static_cast<std::uintptr_t>(kHugePage);
  return data + ((page - address % page) % page);
}

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
    munmap(mapping_, mapping_bytes_);
  }
}

Status Arena::reserve(std::int64_t bytes) {
  TIDEKV_CHECK(base_ == nullptr);
  if (bytes == 0) {
    return Ok{};
  }
  // Addresses for the alignment; no memory stands behind those not used.
  const std::size_t mapping_bytes = static_cast<std::size_t>(bytes) + kHugePage;
  void* mapped = mmap(nullptr, mapping_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    return out_of_memory(bytes, errno);
  }
  mapping_ = mapped;
  mapping_bytes_ = mapping_bytes;
  base_ = round_up_to_huge_page(static_cast<std::byte*>(mapped));
  bytes_ = bytes;
  prefer_huge_pages(base_, bytes_);
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
  const std::int64_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  const std::int64_t size = round_up(bytes == 0 ? 1 : bytes, alignment);
  auto* data = static_cast<std::byte*>(
      std::aligned_alloc(static_cast<std::size_t>(alignment), static_cast<std::size_t>(size)));
  if (data == nullptr) {
    return out_of_memory(bytes, ENOMEM);
  }
  if (alignment == kHugePage) {
    prefer_huge_pages(data, size);
  }
  fill_with_nan(data, bytes);
  return data;
}

void Arena::release_allocated(std::byte* data, std::int64_t bytes) {
  fill_with_nan(data, bytes);
  std::free(data);
}

}  // namespace tidekv::cpu
