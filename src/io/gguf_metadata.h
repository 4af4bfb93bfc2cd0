// The metadata of a GGUF file: what the model is and how it tokenizes, by key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/field_reader.h"
#include "base/json_value.h"
#include "io/gguf_value_type.h"
#include "tidekv/result.h"

namespace tidekv {

// An array of the metadata, inside the mapped file. `bytes` hold all elements, packed: of strings,
// each a length of 8 bytes and the text.
struct GgufArray {
  GgufType type = GgufType::kUint8;  // of the elements; never kArray
  std::uint64_t count = 0;
  std::span<const std::byte> bytes;
};

// Calls `each` with every element of an array of strings, without copying them.
void for_each_string(const GgufArray& strings, const std::function<void(std::string_view)>& each);

// Everything is checked when it is read: lengths, types, and that no key appears twice.
struct GgufMetadata {
  std::string file;  // leads every error
  std::uint32_t version = 0;

  // In the file's order. Integers are int64 (beyond it double, as in JSON), floats double; NaN and
  // infinity are possible. An array shows here as a JSON array of one null, never as its content:
  // a field that is an array by surprise is then not taken for a missing one.
  JsonObject fields;
  std::map<std::string, GgufArray, std::less<>> arrays;

  FieldReader reader() const { return {fields, file}; }
  const GgufArray* array(std::string_view key) const;  // null if there is none of that name

  // The elements of an array; an error that names file and key if it is missing, of another type
  // or longer than 2^24. Strings point into the mapped file.
  Result<std::vector<std::string_view>> strings(std::string_view key) const;
  Result<std::vector<float>> floats(std::string_view key) const;           // of float32
  Result<std::vector<std::int64_t>> integers(std::string_view key) const;  // of any integer type
};

}  // namespace tidekv
