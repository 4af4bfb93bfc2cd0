// Keys and values of one layer, as kernels see them.
//
// One layout for every cache: K and V are slabs of rows [*, head_dim]; each KV head owns a span of
// rows. The active layer and a rectangular compact cache have spans of equal length; a
// head-adaptive cache has unequal ones. Rows hold post-RoPE keys in the activation type.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>

#include "tensor/view.h"

namespace tidekv {

// Rows [offset, offset + len) of the slab hold data; up to offset + capacity may be appended.
struct HeadSpan {
  std::int64_t offset = 0;
  std::int64_t len = 0;
  std::int64_t capacity = 0;
};

// Keys that attention meets at once.
struct KeyCounts {
  std::int64_t longest_head = 0;
  std::int64_t total = 0;  // of all heads that attend together
};

struct KvView {
  DeviceView keys;                  // [sum of capacities, head_dim]
  DeviceView values;                // the same shape
  std::span<const HeadSpan> heads;  // [num_kv_heads]
  // Of a view of some of a layer's heads: those before them, and all there are; 0: these are all.
  std::int64_t first_head = 0;
  std::int64_t num_all_heads = 0;

  std::int64_t num_kv_heads() const { return static_cast<std::int64_t>(heads.size()); }
  std::int64_t head_dim() const { return keys.cols(); }
  std::int64_t heads_of_layer() const { return num_all_heads > 0 ? num_all_heads : num_kv_heads(); }
  std::int64_t longest_head() const {
    std::int64_t longest = 0;
    for (const HeadSpan& head : heads) {
      longest = std::max(longest, head.len);
    }
    return longest;
  }
  // Of all heads.
  std::int64_t total_rows() const {
    return std::accumulate(heads.begin(), heads.end(), std::int64_t{0},
                           [](std::int64_t sum, const HeadSpan& head) { return sum + head.len; });
  }
};

// Slots or positions of every KV head, one head's behind the other's.
struct HeadLists {
  DeviceView entries;                  // [1, sum of lens] i32
  std::span<const std::int64_t> lens;  // [num_kv_heads]

  std::int64_t num_heads() const { return static_cast<std::int64_t>(lens.size()); }
  // Sum of lens.
  std::int64_t total() const { return std::accumulate(lens.begin(), lens.end(), std::int64_t{0}); }
  // The list of one head.
  HeadLists of_head(std::size_t head) const {
    const std::int64_t first = std::accumulate(
        lens.begin(), lens.begin() + static_cast<std::ptrdiff_t>(head), std::int64_t{0});
    const DeviceView column = entries.reshaped(entries.cols(), 1);
    return {column.rows_at(first, lens[head]).reshaped(1, lens[head]), lens.subspan(head, 1)};
  }
};

}  // namespace tidekv
