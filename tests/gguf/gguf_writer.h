// Writes small GGUF files for tests: valid ones by GgufWriter, broken ones from the pieces below.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensor/dtype.h"

namespace tidekv::gguf {

// Value types, in the format's numbering.
inline constexpr std::uint32_t kUint8 = 0;
inline constexpr std::uint32_t kUint16 = 2;
inline constexpr std::uint32_t kUint32 = 4;
inline constexpr std::uint32_t kInt32 = 5;
inline constexpr std::uint32_t kFloat32 = 6;
inline constexpr std::uint32_t kBool = 7;
inline constexpr std::uint32_t kString = 8;
inline constexpr std::uint32_t kArray = 9;
inline constexpr std::uint32_t kUint64 = 10;
inline constexpr std::uint32_t kInt64 = 11;
inline constexpr std::uint32_t kFloat64 = 12;

// The little-endian bytes of a number.
template <typename T>
std::string number(T value) {
  static_assert(std::is_arithmetic_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::string string(const std::string& text);  // length and text
std::string header(std::uint32_t version, std::uint64_t num_tensors, std::uint64_t num_fields);
std::string field(const std::string& key, std::uint32_t type, const std::string& value);
std::string array(std::uint32_t element_type, std::uint64_t count, const std::string& elements);
// `dims` innermost first, as in the file.
std::string description(const std::string& name, const std::vector<std::uint64_t>& dims,
                        std::uint32_t type, std::uint64_t offset);
// Zero bytes up to a multiple of `alignment`.
std::string padded(std::string bytes, std::size_t alignment);

// The format's number of an element type.
std::uint32_t type_id(DType dtype);

// Collects fields and tensors, then gives the file. In a chain: GgufWriter().uint32("a", 1).file().
class GgufWriter {
 public:
  explicit GgufWriter(std::uint32_t version = 3) : version_(version) {}

  GgufWriter& field(const std::string& key, std::uint32_t type, const std::string& value);
  GgufWriter& uint16(const std::string& key, std::uint16_t value);
  GgufWriter& uint32(const std::string& key, std::uint32_t value);
  GgufWriter& int32(const std::string& key, std::int32_t value);
  GgufWriter& float32(const std::string& key, float value);
  GgufWriter& boolean(const std::string& key, bool value);
  GgufWriter& string(const std::string& key, const std::string& value);
  GgufWriter& strings(const std::string& key, const std::vector<std::string>& values);
  GgufWriter& int32s(const std::string& key, const std::vector<std::int32_t>& values);
  GgufWriter& float32s(const std::string& key, const std::vector<float>& values);

  // Also writes general.alignment.
  GgufWriter& alignment(std::uint32_t bytes);

  // `shape` outermost first, as in TensorInfo; `data` is the tensor's bytes.
  GgufWriter& tensor(const std::string& name, const std::vector<std::int64_t>& shape, DType dtype,
                     const std::string& data);

  std::string file() const;

 private:
  std::uint32_t version_;
  std::uint32_t alignment_ = 32;
  std::uint64_t num_fields_ = 0;
  std::string fields_;
  std::vector<std::pair<std::string, std::string>> tensors_;  // description up to the offset; data
};

}  // namespace tidekv::gguf
