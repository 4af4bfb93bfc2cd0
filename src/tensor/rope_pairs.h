// Which two numbers of a head a rotary angle turns.
#pragma once

#include <cstdint>

namespace tidekv {

// Results always lie at i and i + D/2: caches and queries have one order.
enum class RopePairs : std::uint8_t {
  kHalves,    // read at i and i + D/2, Hugging Face's order
  kAdjacent,  // read at 2 i and 2 i + 1, the order of query and key rows in a GGUF file of a llama
};

}  // namespace tidekv
