#include "io/gguf_value_type.h"

#include <type_traits>
#include <utility>

#include "io/byte_reader.h"

namespace tidekv {
namespace {

template <typename T>
JsonValue as_json(const std::byte* at) {
  const T number = load_little_endian<T>(at);
  if constexpr (std::is_integral_v<T>) {
    if (std::in_range<std::int64_t>(number)) {
      return {static_cast<std::int64_t>(number)};
    }
  }
  return {static_cast<double>(number)};
}

}  // namespace

JsonValue number_of(GgufType type, const std::byte* at) {
  switch (type) {
    case GgufType::kUint8:
      return as_json<std::uint8_t>(at);
    case GgufType::kInt8:
      return as_json<std::int8_t>(at);
    case GgufType::kUint16:
      return as_json<std::uint16_t>(at);
    case GgufType::kInt16:
      return as_json<std::int16_t>(at);
    case GgufType::kUint32:
      return as_json<std::uint32_t>(at);
    case GgufType::kInt32:
      return as_json<std::int32_t>(at);
    case GgufType::kUint64:
      return as_json<std::uint64_t>(at);
    case GgufType::kInt64:
      return as_json<std::int64_t>(at);
    case GgufType::kFloat32:
      return as_json<float>(at);
    case GgufType::kFloat64:
      return as_json<double>(at);
    case GgufType::kBool:
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return {};
}

}  // namespace tidekv
