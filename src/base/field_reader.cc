#include "base/field_reader.h"

#include <algorithm>
#include <cstdio>

namespace tidekv {
namespace {

std::string spelled(double number) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%g", number);
  return digits;
}

std::string expected_in(IntRange range) {
  return "an integer from " + std::to_string(range.min) + " to " + std::to_string(range.max);
}

std::string expected_in(NumberRange range) {
  return "a number from " + spelled(range.min) + " to " + spelled(range.max);
}

std::optional<double> as_number(const JsonValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value.data)) {
    return static_cast<double>(*whole);
  }
  if (const auto* real = std::get_if<double>(&value.data)) {
    return *real;
  }
  return std::nullopt;
}

}  // namespace

const JsonValue* FieldReader::find(std::string_view name) const {
  for (const JsonMember& member : *object_) {
    if (member.key == name) {
      return member.value.is_null() ? nullptr : &member.value;
    }
  }
  return nullptr;
}

Error FieldReader::error(ErrorCode code, std::string_view name, std::string_view expected) const {
  const JsonValue* value = find(name);
  return Error{code, where_ + ": field " + in_quotes(prefix_ + std::string(name)) + " is " +
                         (value == nullptr ? "missing" : describe(*value)) + "; expected " +
                         std::string(expected)};
}

Error FieldReader::error_in(ErrorCode code, std::string_view name, const JsonValue& element,
                            std::string_view expected) const {
  return Error{code, where_ + ": field " + in_quotes(prefix_ + std::string(name)) + " holds " +
                         describe(element) + "; expected " + std::string(expected)};
}

Result<std::int64_t> FieldReader::integer(std::string_view name, IntRange range) const {
  const JsonValue* value = find(name);
  const auto* number = value == nullptr ? nullptr : std::get_if<std::int64_t>(&value->data);
  if (number == nullptr || *number < range.min || *number > range.max) {
    return error(ErrorCode::kBadFile, name, expected_in(range));
  }
  return *number;
}

Result<std::int64_t> FieldReader::integer_or(std::string_view name, IntRange range,
                                             std::int64_t fallback) const {
  return find(name) == nullptr ? Result<std::int64_t>(fallback) : integer(name, range);
}

Result<double> FieldReader::number(std::string_view name, NumberRange range) const {
  const JsonValue* value = find(name);
  const std::optional<double> number = value == nullptr ? std::nullopt : as_number(*value);
  if (!number || !(*number >= range.min && *number <= range.max)) {  // a NaN is in no range
    return error(ErrorCode::kBadFile, name, expected_in(range));
  }
  return *number;
}

Result<double> FieldReader::number_or(std::string_view name, NumberRange range,
                                      double fallback) const {
  return find(name) == nullptr ? Result<double>(fallback) : number(name, range);
}

Result<std::vector<std::int64_t>> FieldReader::integers(std::string_view name,
                                                        IntRange range) const {
  const std::string expected = "an array, each element " + expected_in(range);
  const JsonValue* value = find(name);
  const auto* array = value == nullptr ? nullptr : std::get_if<JsonArray>(&value->data);
  if (array == nullptr) {
    return error(ErrorCode::kBadFile, name, expected);
  }
  std::vector<std::int64_t> out;
  out.reserve(array->size());
  for (const JsonValue& element : *array) {
    const auto* number = std::get_if<std::int64_t>(&element.data);
    if (number == nullptr || *number < range.min || *number > range.max) {
      return error_in(ErrorCode::kBadFile, name, element, expected);
    }
    out.push_back(*number);
  }
  return out;
}

Result<bool> FieldReader::boolean(std::string_view name) const {
  const JsonValue* value = find(name);
  const auto* flag = value == nullptr ? nullptr : std::get_if<bool>(&value->data);
  if (flag == nullptr) {
    return error(ErrorCode::kBadFile, name, "true or false");
  }
  return *flag;
}

Result<bool> FieldReader::boolean_or(std::string_view name, bool fallback) const {
  return find(name) == nullptr ? Result<bool>(fallback) : boolean(name);
}

Result<std::string> FieldReader::string(std::string_view name, std::string_view expected) const {
  const JsonValue* value = find(name);
  if (value != nullptr) {
    if (const auto* text = std::get_if<std::string>(&value->data)) {
      return *text;
    }
  }
  return error(ErrorCode::kBadFile, name, expected);
}

Result<std::optional<FieldReader>> FieldReader::object(std::string_view name) const {
  const JsonValue* value = find(name);
  if (value == nullptr) {
    return std::optional<FieldReader>();
  }
  if (const auto* inner = std::get_if<JsonObject>(&value->data)) {
    return std::optional<FieldReader>(
        FieldReader(*inner, where_, prefix_ + std::string(name) + "."));
  }
  return error(ErrorCode::kBadFile, name, "an object");
}

Result<FieldReader> FieldReader::required_object(std::string_view name) const {
  TIDEKV_ASSIGN(std::optional<FieldReader> inner, object(name));
  if (!inner) {
    return error(ErrorCode::kBadFile, name, "an object");
  }
  return *std::move(inner);
}

Result<std::vector<FieldReader>> FieldReader::objects(std::string_view name) const {
  const JsonValue* value = find(name);
  const auto* array = value == nullptr ? nullptr : std::get_if<JsonArray>(&value->data);
  if (array == nullptr) {
    return error(ErrorCode::kBadFile, name, "an array of objects");
  }
  std::vector<FieldReader> out;
  for (const JsonValue& element : *array) {
    const std::string element_path = path(name) + "[" + std::to_string(out.size()) + "]";
    const auto* inner = std::get_if<JsonObject>(&element.data);
    if (inner == nullptr) {
      return Error{ErrorCode::kBadFile, where_ + ": field " + in_quotes(element_path) + " is " +
                                            describe(element) + "; expected an object"};
    }
    out.push_back(FieldReader(*inner, where_, element_path + "."));
  }
  return out;
}

Status FieldReader::only(std::initializer_list<std::string_view> known) const {
  for (const JsonMember& member : *object_) {
    if (std::find(known.begin(), known.end(), member.key) == known.end()) {
      std::string names;
      for (const std::string_view name : known) {
        names.append(names.empty() ? "" : ", ").append(name);
      }
      return Error{ErrorCode::kUnsupported, where_ + ": field " + in_quotes(prefix_ + member.key) +
                                                " is not supported; expected only " + names};
    }
  }
  return Ok{};
}

std::string FieldReader::path(std::string_view name) const {
  if (name.empty() && prefix_.ends_with('.')) {
    return prefix_.substr(0, prefix_.size() - 1);
  }
  return prefix_ + std::string(name);
}

}  // namespace tidekv
