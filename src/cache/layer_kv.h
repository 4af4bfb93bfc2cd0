// KV of one layer with the bytes that hold it: the one layout of active and compact caches.
#pragma once

#include <cstdint>
#include <span>

#include "backend/backend.h"
#include "backend/kv_view.h"
#include "cache/attended_kv.h"

namespace tidekv {

// How a cache stores its rows in few bits (cache/quantised_kv.h).
struct KvQuantiser {
  std::int64_t bits = 0;          // of a code, 2 or 4; 0: rows are stored as they come
  std::int64_t group_len = 0;     // codes that share scale and minimum
  std::int64_t residual_len = 0;  // newest tokens that stay rows; whole groups

  explicit operator bool() const { return bits > 0; }
  friend bool operator==(const KvQuantiser&, const KvQuantiser&) = default;
};

// What every layer of a model's cache has in common.
struct CacheShape {
  std::int64_t num_layers = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  DType dtype = DType::kBF16;
  std::int64_t prompt_len = 0;
  std::int64_t growth_len = 0;  // rows per head set aside for generated tokens
  KvQuantiser quantiser = {};
  // Most tokens appended at once to a cache in the offload pool; 0: the cache is on the device.
  std::int64_t offload_chunk_len = 0;

  // K and V of one row of one head.
  std::int64_t row_bytes() const { return 2 * head_dim * size_of(dtype); }
  // K and V of `rows` tokens in every head.
  std::int64_t kv_bytes(std::int64_t rows) const { return num_kv_heads * rows * row_bytes(); }
};

// Host memory for one number or span of each KV head, taken before a request begins: nothing on the
// way may fail to allocate.
struct HeadStorage {
  std::span<HeadSpan> spans;     // [num_kv_heads]
  std::span<std::int64_t> lens;  // [num_kv_heads]
};

// One buffer: the slab of keys [sum of capacities, head_dim], then that of values.
class LayerKv final : public AttendedKv {
 public:
  LayerKv() = default;

  // What to allocate: `lens` rows of the heads, and `growth` rows more for each.
  struct Rows {
    std::span<const std::int64_t> lens;  // [num_kv_heads]; charged to `component`
    std::int64_t growth = 0;             // charged to kDecodeGrowth
    Component component = Component::kCompactCache;
  };
  // `spans` [num_kv_heads] holds the heads' spans and outlives this object; `rows.lens` need not.
  static Result<LayerKv> allocate(Backend& backend, const CacheShape& shape, const Rows& rows,
                                  std::span<HeadSpan> spans);

  KvView view() const { return {keys_, values_, spans_}; }
  KvView room(std::int64_t /*rows*/) override { return view(); }
  KeyCounts keys_met(std::int64_t rows) const override;
  void attend(Backend& backend, DeviceView q, const AttentionOptions& options) override {
    backend.attend(q, view(), options);
  }
  std::span<const HeadSpan> heads() const { return spans_; }
  // Copies all rows of `from`, of heads that are empty here.
  void copy_rows(Backend& backend, const LayerKv& from);
  // The caller appended `rows` rows to every head, or `rows[head]` to each.
  void advance(std::int64_t rows) override;
  void advance(std::span<const std::int64_t> rows);
  // The same bytes for heads of other lengths, all of them empty: `lens` rows and `growth` more for
  // each. No more rows in all than before.
  void lay_out(std::span<const std::int64_t> lens, std::int64_t growth);
  // Only the first `lens` rows of each head still count.
  void shrink(std::span<const std::int64_t> lens);
  // The same bytes, from now on with spans kept in `spans` and charged to `to`.
  void adopt(std::span<HeadSpan> spans, Component from, Component to);

 private:
  Buffer buffer_;
  DeviceView keys_;
  DeviceView values_;
  std::span<HeadSpan> spans_;
};

// Appends all rows of `from` to `to`.
void append_rows(Backend& backend, const KvView& from, AttendedKv& to);

}  // namespace tidekv
