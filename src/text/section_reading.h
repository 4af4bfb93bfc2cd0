// What the readers of tokenizer.json's sections share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/field_reader.h"
#include "tidekv/result.h"

namespace tidekv {

// "<file>: <path of the field>", for errors that go on in their own words.
inline std::string place_of(const FieldReader& fields, std::string_view name = {}) {
  return fields.where() + ": " + fields.path(name);
}

inline Result<std::string> type_of(const FieldReader& fields) {
  return fields.string("type", "the name of a type");
}

inline Error unsupported_type(const FieldReader& fields, std::string_view expected) {
  return fields.error(ErrorCode::kUnsupported, "type", expected);
}

// Calls read(section, type) for `fields`, or for each object of `list` if it is a Sequence.
template <typename Read>
Status for_each_in_sequence(const FieldReader& fields, const char* list, const Read& read) {
  TIDEKV_ASSIGN(const std::string type, type_of(fields));
  if (type != "Sequence") {
    return read(fields, type);
  }
  TIDEKV_TRY(fields.only({"type", list}));
  TIDEKV_ASSIGN(const std::vector<FieldReader> elements, fields.objects(list));
  for (const FieldReader& element : elements) {
    TIDEKV_ASSIGN(const std::string element_type, type_of(element));
    TIDEKV_TRY(read(element, element_type));
  }
  return Ok{};
}

}  // namespace tidekv
