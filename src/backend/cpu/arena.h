// Memory of the CPU backend: one mapping for everything planned, or single blocks without a plan.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tidekv/result.h"

namespace tidekv::cpu {

// The bytes of one request. Nothing is touched in release builds, so a page becomes resident when
// it is first written. Debug builds fill what is born and what dies with 0xFF (NaN in every float
// type); under AddressSanitizer all but live allocations is poisoned. Where the system offers huge
// pages they are used.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();

  // Maps `bytes`; at most once.
  Status reserve(std::int64_t bytes);
  // `bytes` at `offset` of the mapping.
  std::byte* place(std::int64_t offset, std::int64_t bytes);
  void release_placed(std::byte* data, std::int64_t bytes);

  // A block of its own, 64-byte aligned at least.
  static Result<std::byte*> allocate(std::int64_t bytes);
  static void release_allocated(std::byte* data, std::int64_t bytes);

 private:
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  std::byte* base_ = nullptr;  // in the mapping, where a huge page begins
  std::int64_t bytes_ = 0;
};

}  // namespace tidekv::cpu
