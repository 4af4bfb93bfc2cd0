// A JSON object's fields by name. Every error names the file, the field and what would be right.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_value.h"
#include "tidekv/result.h"

namespace tidekv {

// Both ends included.
struct IntRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
};
struct NumberRange {
  double min = 0.0;
  double max = 0.0;
};

// Looks into an object that must outlive it. A null field counts as absent, as in Hugging Face
// configs; absent ones give the fallback, or an error where there is none.
class FieldReader {
 public:
  // `where` leads every error, e.g. the file's path. `prefix` leads the field names:
  // "rope_scaling.".
  FieldReader(const JsonObject& object, std::string where, std::string prefix = "")
      : object_(&object), where_(std::move(where)), prefix_(std::move(prefix)) {}

  const JsonValue* find(std::string_view name) const;  // null if absent or JSON null
  const JsonObject& members() const { return *object_; }

  Result<std::int64_t> integer(std::string_view name, IntRange range) const;
  Result<std::int64_t> integer_or(std::string_view name, IntRange range,
                                  std::int64_t fallback) const;
  Result<double> number(std::string_view name, NumberRange range) const;
  Result<double> number_or(std::string_view name, NumberRange range, double fallback) const;
  // An array of any length.
  Result<std::vector<std::int64_t>> integers(std::string_view name, IntRange range) const;
  Result<bool> boolean(std::string_view name) const;
  Result<bool> boolean_or(std::string_view name, bool fallback) const;
  // `expected` says what the string should be, for the error: "a file name".
  Result<std::string> string(std::string_view name, std::string_view expected) const;
  // The fields of an object inside this one; nothing if absent.
  Result<std::optional<FieldReader>> object(std::string_view name) const;
  // The same, where it must be there.
  Result<FieldReader> required_object(std::string_view name) const;
  // The objects of an array of objects, of any length.
  Result<std::vector<FieldReader>> objects(std::string_view name) const;

  // Ok if all fields are among the `known` ones.
  Status only(std::initializer_list<std::string_view> known) const;

  const std::string& where() const { return where_; }
  // A field's name from the outermost object on, "rope_scaling.type"; without `name` this object's.
  std::string path(std::string_view name = {}) const;

  // "<where>: field '<prefix><name>' is <value or missing>; expected <expected>".
  Error error(ErrorCode code, std::string_view name, std::string_view expected) const;
  // "<where>: field '<prefix><name>' holds <element>; expected <expected>", of an array's element.
  Error error_in(ErrorCode code, std::string_view name, const JsonValue& element,
                 std::string_view expected) const;

 private:
  const JsonObject* object_;
  std::string where_;
  std::string prefix_;
};

}  // namespace tidekv
