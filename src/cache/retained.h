// What the cut of a layer retains: the compressor's answer and the cache manager's order.
#pragma once

#include <span>

#include "backend/backend.h"

namespace tidekv {

struct Retained {
  Buffer buffer;                       // of the positions
  DeviceView positions;                // [1, sum of lens] i32, head by head, ascending in each
  std::span<const std::int64_t> lens;  // [num_kv_heads]; whoever asked for the cut holds them

  HeadLists lists() const { return {positions, lens}; }
};

}  // namespace tidekv
