// The filters, tests and methods that chat templates may use. A name that is not here is an error
// when the template is read.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/template_runtime.h"
#include "chat/template_value.h"
#include "tidekv/result.h"

namespace tidekv {

inline constexpr std::size_t kMaxParameters = 4;

struct BuiltinCall {
  TemplateRuntime& runtime;
  const Value& value;  // what the filter, test or method is applied to
  std::array<std::optional<Value>, kMaxParameters> args;  // by parameter
  std::vector<Value> rest;                                // of builtins with rest_from
};

struct Builtin {
  std::string_view name;
  Result<Value> (*apply)(BuiltinCall& call) = nullptr;
  std::size_t required = 0;  // parameters without a default
  std::array<std::string_view, kMaxParameters> parameters = {};
  int rest_from = -1;  // positional arguments from here on are for another builtin; -1: none
};

struct CallArguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string_view, Value>> named;
};

// The builtin of that name in a table; null: none.
template <std::size_t kSize>
const Builtin* find_builtin(const std::array<Builtin, kSize>& table, std::string_view name) {
  const auto at = std::find_if(table.begin(), table.end(),
                               [name](const Builtin& builtin) { return builtin.name == name; });
  return at == table.end() ? nullptr : &*at;
}

const Builtin* find_filter(std::string_view name);
const Builtin* find_test(std::string_view name);
const Builtin* find_method(const Value& object, std::string_view name);
const Builtin* find_text_method(std::string_view name);  // of str
// Whether a template may call some object's method of that name.
bool is_method_name(std::string_view name);

// Why `builtin` cannot take these arguments; empty if it can.
std::string argument_problem(const Builtin& builtin, std::size_t num_positional,
                             const std::vector<std::string_view>& names);
Result<Value> call_builtin(TemplateRuntime& runtime, const Builtin& builtin, const Value& value,
                           const CallArguments& arguments);

// Jinja's object.name and object[key].
Result<Value> attribute_of(TemplateRuntime& runtime, const Value& object, std::string_view name);
Result<Value> item_of(TemplateRuntime& runtime, const Value& object, const Value& key);

}  // namespace tidekv
