// Methods of Python's dict and list; those of str are in template_methods.cc.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "chat/template_builtins.h"
#include "chat/template_operators.h"

namespace tidekv {
namespace {

Result<Value> dict_items(BuiltinCall& call) {
  std::vector<Value> items;
  for (const auto& [key, value] : call.value.dict()->entries) {
    TIDEKV_ASSIGN(const Value pair, call.runtime.list({key, value}, ValueList::Kind::kTuple));
    items.push_back(pair);
  }
  return call.runtime.list(std::move(items), ValueList::Kind::kView);
}
Result<Value> dict_keys(BuiltinCall& call) {
  std::vector<Value> keys;
  for (const auto& [key, value] : call.value.dict()->entries) {
    keys.push_back(key);
  }
  return call.runtime.list(std::move(keys), ValueList::Kind::kView);
}
Result<Value> dict_values(BuiltinCall& call) {
  std::vector<Value> values;
  for (const auto& [key, value] : call.value.dict()->entries) {
    values.push_back(value);
  }
  return call.runtime.list(std::move(values), ValueList::Kind::kView);
}
Result<Value> dict_get(BuiltinCall& call) {
  TIDEKV_ASSIGN(const Value* found, find_key(call.runtime, *call.value.dict(), *call.args[0]));
  if (found != nullptr) {
    return *found;
  }
  return call.args[1] ? *call.args[1] : Value{NoneValue{}};
}

Result<Value> list_count(BuiltinCall& call) {
  std::int64_t found = 0;
  for (const Value& item : call.value.list()->items) {
    TIDEKV_ASSIGN(const bool same, equals(call.runtime, item, *call.args[0]));
    found += same ? 1 : 0;
  }
  return Value{found};
}
Result<Value> list_index(BuiltinCall& call) {
  const std::vector<Value>& items = call.value.list()->items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    TIDEKV_ASSIGN(const bool same, equals(call.runtime, items[i], *call.args[0]));
    if (same) {
      return Value{static_cast<std::int64_t>(i)};
    }
  }
  return call.runtime.error("index(): the value is not in the list");
}

// As in Transformers, where templates run immutable.
Result<Value> refuse_change(BuiltinCall& call) {
  return call.runtime.error("a template must not change a " + std::string(type_name(call.value)) +
                            "; expected a new value with 'set'");
}

constexpr std::array kDictMethods = {
    Builtin{"items", dict_items, 0, {}},
    Builtin{"keys", dict_keys, 0, {}},
    Builtin{"values", dict_values, 0, {}},
    Builtin{"get", dict_get, 1, {"key", "default"}},
    Builtin{"clear", refuse_change, 0, {}},
    Builtin{"pop", refuse_change, 0, {"key", "default"}},
    Builtin{"popitem", refuse_change, 0, {}},
    Builtin{"setdefault", refuse_change, 0, {"key", "default"}},
    Builtin{"update", refuse_change, 0, {"other"}},
};
constexpr std::array kListMethods = {
    Builtin{"count", list_count, 1, {"value"}},
    Builtin{"index", list_index, 1, {"value"}},
    Builtin{"append", refuse_change, 0, {"item"}},
    Builtin{"clear", refuse_change, 0, {}},
    Builtin{"extend", refuse_change, 0, {"items"}},
    Builtin{"insert", refuse_change, 0, {"index", "item"}},
    Builtin{"pop", refuse_change, 0, {"index"}},
    Builtin{"remove", refuse_change, 0, {"item"}},
    Builtin{"reverse", refuse_change, 0, {}},
    Builtin{"sort", refuse_change, 0, {}},
};
constexpr std::array kOtherMethods = {Builtin{"copy"}, Builtin{"fromkeys"}};

}  // namespace

const Builtin* find_method(const Value& object, std::string_view name) {
  if (object.is<MarkedText>()) {
    return find_text_method(name);
  }
  if (object.dict() != nullptr) {
    const Builtin* found = find_builtin(kDictMethods, name);
    return found != nullptr ? found : find_builtin(kOtherMethods, name);
  }
  if (object.list() == nullptr) {
    return nullptr;
  }
  const Builtin* found = find_builtin(kListMethods, name);
  const ValueList::Kind kind = object.list()->kind;
  if (kind == ValueList::Kind::kList) {
    return found != nullptr ? found : find_builtin(kOtherMethods, name);
  }
  const bool reads = name == "count" || name == "index";
  return kind == ValueList::Kind::kTuple && reads ? found : nullptr;
}

bool is_method_name(std::string_view name) {
  const Builtin* method = find_text_method(name);
  return (method != nullptr && method->apply != nullptr) ||
         find_builtin(kDictMethods, name) != nullptr || find_builtin(kListMethods, name) != nullptr;
}

}  // namespace tidekv
