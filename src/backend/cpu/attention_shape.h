// The shape of one call to attend, window_lse or score_keys.
#pragma once

#include <cmath>
#include <cstdint>

#include "backend/cpu/operations.h"
#include "base/checked_math.h"

namespace tidekv::cpu {

// A row is a query of one query head: those of a KV head's group follow one another.
struct AttentionShape {
  std::int64_t num_queries;
  std::int64_t num_kv_heads;
  std::int64_t group;  // query heads of one KV head
  std::int64_t head_dim;
  std::int64_t padded_dim;  // head_dim in whole panels
  Element type;
  float scale;
  Products query_key;           // the product of queries and keys
  std::int64_t first_head = 0;  // of the layer's KV heads

  // `all_heads` of the layer have their queries in q; those that attend are `kv_heads` of them.
  AttentionShape(const Kernels& kernels, DeviceView q, std::int64_t kv_heads,
                 std::int64_t all_heads, std::int64_t dim)
      : num_queries(q.rows()),
        num_kv_heads(kv_heads),
        group(q.cols() / (all_heads * dim)),
        head_dim(dim),
        padded_dim(round_up(dim, kPanelCols)),
        type(element_of(q.dtype())),
        scale(1.0F / std::sqrt(static_cast<float>(dim))),
        query_key(products_of(kernels, type, type)) {}
  AttentionShape(const Kernels& kernels, DeviceView q, const KvView& kv)
      : AttentionShape(kernels, q, kv.num_kv_heads(), kv.heads_of_layer(), kv.head_dim()) {
    first_head = kv.first_head;
  }

  std::int64_t num_rows() const { return num_queries * group; }
  // Keys that a row sees of a KV head that has `len`.
  std::int64_t visible(std::int64_t len, std::int64_t row) const {
    return len - num_queries + row / group + 1;
  }
  // Where the row lies in q.
  std::byte* query(DeviceView q, std::int64_t kv_head, std::int64_t row) const {
    return address(q, row / group, ((first_head + kv_head) * group + row % group) * head_dim);
  }
};

}  // namespace tidekv::cpu
