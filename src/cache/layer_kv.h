// KV of one layer with the bytes that hold it: the one layout of active and compact caches.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "backend/kv_view.h"

namespace tidekv {

// What every layer of a model's cache has in common.
struct CacheShape {
  std::int64_t num_layers = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  DType dtype = DType::kBF16;
  std::int64_t prompt_len = 0;
  std::int64_t growth_len = 0;  // rows per head set aside for generated tokens

  // K and V of `rows` tokens in every head.
  std::int64_t kv_bytes(std::int64_t rows) const {
    return 2 * num_kv_heads * rows * head_dim * size_of(dtype);
  }
};

// One buffer: the slab of keys [num_kv_heads * capacity, head_dim], then that of values.
class LayerKv {
 public:
  LayerKv() = default;

  // `len_rows` rows per head are charged to `component`, `growth_rows` more to kDecodeGrowth.
  // `spans` [num_kv_heads] holds the heads' spans and outlives this object.
  static Result<LayerKv> allocate(Backend& backend, const CacheShape& shape, Component component,
                                  std::int64_t len_rows, std::int64_t growth_rows,
                                  std::span<HeadSpan> spans);

  KvView view() const { return {keys_, values_, spans_}; }
  std::span<const HeadSpan> heads() const { return spans_; }
  // The caller appended `rows` rows to every head.
  void advance(std::int64_t rows);
  // The same bytes, from now on with spans kept in `spans` and charged to `to`.
  void adopt(std::span<HeadSpan> spans, Component from, Component to);

 private:
  Buffer buffer_;
  DeviceView keys_;
  DeviceView values_;
  std::span<HeadSpan> spans_;
};

}  // namespace tidekv
