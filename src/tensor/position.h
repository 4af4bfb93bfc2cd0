// After eviction "where" has two meanings, so they are two types.
#pragma once

#include <cstdint>

namespace tidekv {

// Absolute place of a token in the prompt. Survives eviction; RoPE and masks use it.
enum class Position : std::int32_t {};
// Row of a token inside one compact cache. Means nothing outside that cache.
enum class Slot : std::int32_t {};

constexpr std::int32_t index_of(Position position) { return static_cast<std::int32_t>(position); }
constexpr std::int32_t index_of(Slot slot) { return static_cast<std::int32_t>(slot); }

}  // namespace tidekv
