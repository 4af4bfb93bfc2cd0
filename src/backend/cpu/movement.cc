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

void append_kv(const Context& context, DeviceView k, DeviceView v, const KvView& kv) {
  const std::int64_t row_bytes = kv.head_dim() * size_of(kv.keys.dtype());
  for_row_pieces(
      context.pool, k.rows(), k.cols(), [&](std::int64_t first, std::int64_t count, int) {
        for (std::int64_t h = 0; h < kv.num_kv_heads(); ++h) {
          const HeadSpan& head = kv.heads[static_cast<std::size_t>(h)];
          for (std::int64_t r = first; r < first + count; ++r) {
            const std::int64_t slot = head.offset + head.len + r;
            copy_piece(address(k, r, h * kv.head_dim()), address(kv.keys, slot), row_bytes);
            copy_piece(address(v, r, h * kv.head_dim()), address(kv.values, slot), row_bytes);
          }
        }
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

}  // namespace tidekv::cpu
