// The ledger of the offload pool: memory beside the device's, and what crossed between the two.
#pragma once

#include <cstdint>

namespace tidekv {

struct Transfers {
  std::int64_t bytes = 0;
  std::int64_t count = 0;

  void add(std::int64_t moved_bytes) {
    bytes += moved_bytes;
    ++count;
  }
  friend Transfers operator-(const Transfers& all, const Transfers& before) {
    return {all.bytes - before.bytes, all.count - before.count};
  }
  friend bool operator==(const Transfers&, const Transfers&) = default;
};

struct PoolLedger {
  std::int64_t peak_bytes = 0;
  Transfers down;  // from the device to the pool
  Transfers up;    // and back
};

}  // namespace tidekv
