// What a chat template computes with: Python's types, as far as templates use them.
//
// A Value is a handle. What it points to belongs to a TemplateRuntime, never changes (namespaces
// apart) and lives until the rendering ends, so no value can own itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "chat/template_node.h"
#include "chat/template_text.h"

namespace tidekv {

struct ValueList;
struct ValueDict;
struct Namespace;
struct LoopState;
struct Macro;

// Jinja's default: prints nothing, is false and empty; any other use is an error.
struct Undefined {
  std::string_view name;
  std::string_view owner;  // type of the object that lacks `name`; empty: a variable
};
struct NoneValue {};

enum class GlobalFunction : std::uint8_t {
  kRange,
  kDict,
  kNamespace,
  kRaiseException,
  kStrftimeNow,
};

struct Value {
  std::variant<Undefined, NoneValue, bool, std::int64_t, double, MarkedText, ValueList*,
               const ValueDict*, Namespace*, const LoopState*, const Macro*, GlobalFunction>
      data;

  template <typename T>
  bool is() const {
    return std::holds_alternative<T>(data);
  }
  template <typename T>
  const T* get() const {
    return std::get_if<T>(&data);
  }
  const ValueList* list() const {
    ValueList* const* held = std::get_if<ValueList*>(&data);
    return held == nullptr ? nullptr : *held;
  }
  const ValueDict* dict() const {
    const ValueDict* const* held = std::get_if<const ValueDict*>(&data);
    return held == nullptr ? nullptr : *held;
  }
};

struct ValueList {
  enum class Kind : std::uint8_t {
    kList,
    kTuple,
    kRange,     // of range()
    kView,      // of a dict: has a length but no elements by number
    kIterator,  // of map, select, reverse...: true, no length, gone after one pass
  };
  Kind kind = Kind::kList;
  bool spent = false;  // an iterator that was passed over
  int depth = 1;       // 1 + the deepest element's
  std::vector<Value> items;
};

struct ValueDict {
  int depth = 1;
  std::vector<std::pair<Value, Value>> entries;  // in order of insertion; keys are distinct
};

struct Namespace {
  std::vector<std::pair<std::string_view, Value>> attributes;
};

struct LoopState {
  const std::vector<Value>* items = nullptr;
  std::size_t index = 0;  // from 0
};

// The variables of a block. Names live in the template.
struct Scope {
  Scope* parent = nullptr;
  bool has_macro = false;  // a macro that stands in it, or in a block of it, may outlive the block
  std::vector<std::pair<std::string_view, Value>> variables;
};

struct Macro {
  NodeId node = 0;
  Scope* scope = nullptr;  // where it was defined
};

bool is_true(const Value& value);
int depth_of(const Value& value);
// Python's name of the type, for error messages.
std::string_view type_name(const Value& value);
// Of a bool, an integer: its value; nothing for other types.
const std::int64_t* integer_of(const Value& value, std::int64_t& buffer);
bool is_number(const Value& value);
double number_of(const Value& value);

}  // namespace tidekv
