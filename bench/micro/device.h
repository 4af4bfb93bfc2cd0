// A backend with its threads and scratch, and operands on it.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "backend/backend.h"
#include "backend/registry.h"
#include "base/thread_pool.h"

namespace tidekv::micro {

// Several equal tensors in one buffer. Calls that take them in turn find none of them in a cache,
// as a model's layers do, if together they are larger than it.
struct Tensors {
  Buffer buffer;
  std::vector<DeviceView> views;

  const DeviceView& at(std::int64_t call) const {
    return views[static_cast<std::size_t>(call) % views.size()];
  }
};

// Caches of as many layers: `at` is full, `empty_at` has the same rows and none in use.
struct Caches {
  Tensors keys;
  Tensors values;
  std::vector<HeadSpan> full;
  std::vector<HeadSpan> empty;

  KvView at(std::int64_t call) const { return {keys.at(call), values.at(call), full}; }
  KvView empty_at(std::int64_t call) const { return {keys.at(call), values.at(call), empty}; }
};

struct CacheSize {
  std::int64_t num_kv_heads = 0;
  std::int64_t len = 0;
  std::int64_t head_dim = 0;
};

// How many equal tensors to make.
enum class Copies : std::uint8_t {
  kOne,  // the operation is bound by arithmetic, or finds its operand in a cache in real use too
  kBeyondCache,  // together larger than a cache
};

class Device {
 public:
  // `cold_bytes`: what tensors made kBeyondCache have together, at least.
  Device(const BackendEntry& entry, int num_threads, std::int64_t cold_bytes);

  Backend& backend() { return *backend_; }
  ThreadPool& pool() { return pool_; }

  // Small plain numbers; blocks with small scales; ids from 0 to 255.
  Tensors make(DType dtype, std::int64_t rows, std::int64_t cols, Copies copies = Copies::kOne);
  Caches make_caches(DType dtype, const CacheSize& size, Copies copies);
  // One tensor with these numbers.
  Tensors make_ids(const std::vector<std::int32_t>& ids, std::int64_t rows);

 private:
  Tensors allocate(DType dtype, std::int64_t rows, std::int64_t cols, std::int64_t count);

  ThreadPool pool_;
  std::unique_ptr<Backend> backend_;
  Tensors workspace_;
  std::int64_t cold_bytes_;
  std::mt19937 random_{20240611};
};

}  // namespace tidekv::micro
