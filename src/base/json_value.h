// JSON from strangers as a small tree: no exceptions, bounded depth and size, no duplicate keys.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tidekv/result.h"

namespace tidekv {

struct JsonMember;
struct JsonValue;
using JsonArray = std::vector<JsonValue>;
using JsonObject = std::vector<JsonMember>;  // in the text's order; keys are distinct

// monostate is null. A whole number outside int64 is held as a double.
struct JsonValue {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, JsonArray, JsonObject> data;

  bool is_null() const { return std::holds_alternative<std::monostate>(data); }
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

struct JsonLimits {
  std::int64_t max_depth = 32;       // destroying a tree recurses once per level
  std::int64_t max_values = 100000;  // inside one member of the outermost object
};

// Parses `text`, which must be one object, and hands over its members one by one, so that a large
// text never stands in memory as one tree. `where` names the text in errors. Stops at the first
// error, also one that `on_member` returns.
Status for_each_json_member(std::string_view text, const std::string& where,
                            const JsonLimits& limits,
                            const std::function<Status(JsonMember)>& on_member);

// The same, with all members together.
Result<JsonObject> parse_json_object(std::string_view text, const std::string& where,
                                     const JsonLimits& limits);

// 'text' for an error message: quoted, cut after 80 bytes, unprintable bytes as \xNN.
std::string in_quotes(std::string_view text);

// What a value is, for an error message: "the number 3", "the string 'abc'", "an array", ...
std::string describe(const JsonValue& value);

}  // namespace tidekv
