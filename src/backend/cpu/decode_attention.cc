// attend for generated tokens.
//
// Keys and values are used as they are stored: packing them, as prefill does, would cost more than
// one row can use.
#include "backend/cpu/row_attention.h"

namespace tidekv::cpu {
namespace {

struct PlainCache {
  const KvView& kv;
  Element type;

  std::int64_t room_floats() const { return 0; }
  std::int64_t len(std::int64_t kv_head) const {
    return kv.heads[static_cast<std::size_t>(kv_head)].len;
  }
  ElementRows keys(const Kernels& /*kernels*/, std::int64_t kv_head, KeyRange range,
                   float* /*room*/) const {
    return rows_of(kv.keys, kv_head, range);
  }
  ElementRows values(const Kernels& /*kernels*/, std::int64_t kv_head, KeyRange range,
                     float* /*room*/) const {
    return rows_of(kv.values, kv_head, range);
  }

 private:
  ElementRows rows_of(DeviceView slab, std::int64_t kv_head, KeyRange range) const {
    const std::int64_t first = kv.heads[static_cast<std::size_t>(kv_head)].offset + range.begin;
    return {address(slab, first), type, kv.head_dim(), range.len()};
  }
};

}  // namespace

void attend_row_by_row(const Context& context, DeviceView q, const KvView& kv) {
  const AttentionShape shape(context.kernels, q, kv);
  attend_rows(context, q, shape, PlainCache{kv, shape.type});
}

}  // namespace tidekv::cpu
