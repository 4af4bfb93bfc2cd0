// Small parts of a JSON file as a bounded tree, and typed access to their fields with errors that
// name file, field and what would be right.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tidekv/result.h"

namespace tidekv {

// Builds one value from parser events. Depth, number of values and bytes of text are limited, and
// a repeated key is an error.
class JsonCollector {
 public:
  JsonCollector();
  JsonCollector(JsonCollector&&) noexcept;
  JsonCollector& operator=(JsonCollector&&) noexcept;
  ~JsonCollector();

  void start(std::string where);  // forgets the last value; `where` names the next in errors
  Status key(const std::string& name);
  Status add(nlohmann::json value);  // a scalar, or an empty array or object that opens here
  void close();                      // the innermost open array or object
  bool complete() const;             // a whole value has been added
  nlohmann::json take();

 private:
  nlohmann::json* place(nlohmann::json value);

  std::string where_;
  std::unique_ptr<nlohmann::json> root_;
  std::vector<nlohmann::json*> open_;
  std::string key_;
  std::int64_t num_values_ = 0;
  std::int64_t text_bytes_ = 0;
  bool has_root_ = false;
};

// One object of the file; `where` is "file: field".
class JsonFields {
 public:
  // An error if `value` is not an object, or has a field that is not in `known`.
  static Result<JsonFields> of(const nlohmann::json& value, std::string where,
                               std::initializer_list<std::string_view> known);

  const nlohmann::json* find(std::string_view name) const;  // nullptr: absent
  Result<const nlohmann::json*> required(std::string_view name) const;
  Result<std::string> text(std::string_view name) const;
  Result<bool> boolean(std::string_view name) const;
  Result<bool> boolean_or(std::string_view name, bool absent) const;
  Result<std::int64_t> integer(std::string_view name) const;
  Result<const nlohmann::json*> array(std::string_view name) const;

  std::string path(std::string_view name) const;  // "file: field.name"
  Error unsupported(std::string_view name, const std::string& what) const;

 private:
  JsonFields(const nlohmann::json& value, std::string where)
      : value_(&value), where_(std::move(where)) {}
  Error wrong(std::string_view name, const std::string& expected) const;

  const nlohmann::json* value_;
  std::string where_;
};

// A value for an error message, shortened.
std::string shown(const nlohmann::json& value);

}  // namespace tidekv
