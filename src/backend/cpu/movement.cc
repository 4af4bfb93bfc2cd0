// Rows and bytes from one place to another.
#include <algorithm>
#include <cstring>

#include "backend/cpu/operations.h"
#include "base/checked_math.h"

namespace tidekv::cpu {
namespace {

// memcpy of nothing may have null pointers, which the standard does not allow.
void copy_piece(const std::byte* from, std::byte* to, std::int64_t bytes) {
  if (bytes > 0) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

}  // namespace

void copy_bytes(const Context& context, const std::byte* from, std::byte* to, std::int64_t bytes) {
  constexpr std::int64_t kPiece = 1 << 20;
  context.pool.parallel_for(ceil_div(bytes, kPiece), [&](std::int64_t task, int) {
    const std::int64_t begin = task * kPiece;
    copy_piece(from + begin, to + begin, std::min(kPiece, bytes - begin));
  });
}

void gather_rows(const Context& context, const KvView& from, const HeadLists& slots,
                 const KvView& to) {
  const std::int64_t row_bytes = from.head_dim() * size_of(from.keys.dtype());
  const std::int32_t* picked = integers(slots.entries);
  for (std::size_t h = 0; h < slots.lens.size(); ++h) {
    const HeadSpan& source = from.heads[h];
    const HeadSpan& target = to.heads[h];
    for_row_pieces(context.pool, slots.lens[h], from.head_dim(),
                   [&](std::int64_t first, std::int64_t count, int) {
                     for (std::int64_t r = first; r < first + count; ++r) {
                       TIDEKV_DCHECK(picked[r] >= 0 && picked[r] < source.len);
                       const std::int64_t slot = source.offset + picked[r];
                       const std::int64_t place = target.offset + target.len + r;
                       copy_piece(address(from.keys, slot), address(to.keys, place), row_bytes);
                       copy_piece(address(from.values, slot), address(to.values, place), row_bytes);
                     }
                   });
    picked += slots.lens[h];
  }
}

void slots_to_positions(const Context& context, const HeadLists& cached, Position first,
                        const HeadLists& slots) {
  const std::int32_t* known = integers(cached.entries);
  std::int32_t* entries = integers(slots.entries);
  for (std::size_t h = 0; h < slots.lens.size(); ++h) {
    for_row_pieces(
        context.pool, slots.lens[h], 1, [&](std::int64_t begin, std::int64_t count, int) {
          for (std::int64_t r = begin; r < begin + count; ++r) {
            const std::int64_t behind = entries[r] - cached.lens[h];
            entries[r] = behind < 0 ? known[entries[r]]
                                    : static_cast<std::int32_t>(index_of(first) + behind);
          }
        });
    known += cached.lens[h];
    entries += slots.lens[h];
  }
}

// Slots ascend, so a row moves towards the front or not at all; within one slab of a head row
// follows row, or one would be overwritten before it has moved.
void keep_rows(const Context& context, const HeadLists& slots, const KvView& kv) {
  const std::int64_t row_bytes = kv.head_dim() * size_of(kv.keys.dtype());
  context.pool.parallel_for(2 * kv.num_kv_heads(), [&](std::int64_t task, int) {
    const auto h = static_cast<std::size_t>(task / 2);
    const DeviceView slab = task % 2 == 0 ? kv.keys : kv.values;
    const std::int32_t* picked = integers(slots.entries);
    for (std::size_t before = 0; before < h; ++before) {
      picked += slots.lens[before];
    }
    for (std::int64_t r = 0; r < slots.lens[h]; ++r) {
      TIDEKV_DCHECK(picked[r] >= r && picked[r] < kv.heads[h].len);
      if (picked[r] != r) {
        copy_piece(address(slab, kv.heads[h].offset + picked[r]),
                   address(slab, kv.heads[h].offset + r), row_bytes);
      }
    }
  });
}

}  // namespace tidekv::cpu
