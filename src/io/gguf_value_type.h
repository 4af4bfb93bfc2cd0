// The types of the values in a GGUF file's metadata.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/json_value.h"

namespace tidekv {

// In the format's own numbering.
enum class GgufType : std::uint8_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

struct GgufTypeTraits {
  std::string_view name;
  std::size_t num_bytes;  // of one value; 0 if they differ
};

inline constexpr std::array<GgufTypeTraits, 13> kGgufTypes = {{{"uint8", 1},
                                                               {"int8", 1},
                                                               {"uint16", 2},
                                                               {"int16", 2},
                                                               {"uint32", 4},
                                                               {"int32", 4},
                                                               {"float32", 4},
                                                               {"bool", 1},
                                                               {"string", 0},
                                                               {"array", 0},
                                                               {"uint64", 8},
                                                               {"int64", 8},
                                                               {"float64", 8}}};

constexpr const GgufTypeTraits& traits_of(GgufType type) {
  return kGgufTypes[static_cast<std::size_t>(type)];
}

constexpr std::string_view name_of(GgufType type) { return traits_of(type).name; }

constexpr bool is_integer(GgufType type) {
  return type <= GgufType::kInt32 || type == GgufType::kUint64 || type == GgufType::kInt64;
}

// The number of that type at an address of any alignment; null if the type is none of numbers.
JsonValue number_of(GgufType type, const std::byte* at);

}  // namespace tidekv
