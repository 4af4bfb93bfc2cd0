#include "prefill/hidden_bridge.h"

#include <algorithm>

namespace tidekv {
namespace {

// Token ids go to the device this many at a time.
constexpr std::int64_t kIdsAtOnce = 4096;

}  // namespace

Result<HiddenBridge> HiddenBridge::open(Backend& backend, DType dtype, std::int64_t num_rows,
                                        std::int64_t hidden_dim) {
  HiddenBridge bridge;
  TIDEKV_ASSIGN(
      bridge.buffer_,
      backend.allocate({{Component::kHiddenBridge, num_rows * hidden_dim * size_of(dtype)}}));
  bridge.rows_ = bridge.buffer_.view(dtype, num_rows, hidden_dim);
  return bridge;
}

Status HiddenBridge::embed(Backend& backend, DeviceView table, std::span<const std::int32_t> tokens,
                           std::int64_t begin) {
  const auto num_tokens = static_cast<std::int64_t>(tokens.size());
  begin_ = begin;
  len_ = num_tokens;
  const std::int64_t ids_len = std::min(num_tokens, kIdsAtOnce);
  TIDEKV_ASSIGN(const Buffer buffer,
                backend.allocate({{Component::kActivations, ids_len * size_of(DType::kI32)}}));
  for (std::int64_t first = 0; first < num_tokens; first += ids_len) {
    const std::int64_t count = std::min(ids_len, num_tokens - first);
    const DeviceView ids = buffer.view(DType::kI32, 1, count);
    backend.upload(std::as_bytes(tokens.subspan(static_cast<std::size_t>(first),
                                                static_cast<std::size_t>(count))),
                   ids);
    backend.embed(table, ids, rows_.rows_at(first, count));
  }
  return Ok{};
}

}  // namespace tidekv
