#include "chat/template_builtins.h"

#include <algorithm>

#include "base/json_value.h"
#include "chat/template_operators.h"

namespace tidekv {
namespace {

Value undefined(std::string_view name, const Value& owner) {
  return Value{Undefined{name, type_name(owner)}};
}

Value loop_attribute(const LoopState& loop, std::string_view name) {
  const auto index = static_cast<std::int64_t>(loop.index);
  const auto length = static_cast<std::int64_t>(loop.items->size());
  const Value whole{&loop};
  if (name == "index" || name == "index0") {
    return Value{index + (name == "index" ? 1 : 0)};
  }
  if (name == "revindex" || name == "revindex0") {
    return Value{length - index - (name == "revindex" ? 0 : 1)};
  }
  if (name == "first" || name == "last") {
    return Value{name == "first" ? index == 0 : index + 1 == length};
  }
  if (name == "length") {
    return Value{length};
  }
  if (name == "depth" || name == "depth0") {  // of recursion, which there is none of
    return Value{std::int64_t{name == "depth" ? 1 : 0}};
  }
  if (name == "previtem" && index > 0) {
    return (*loop.items)[loop.index - 1];
  }
  if (name == "nextitem" && index + 1 < length) {
    return (*loop.items)[loop.index + 1];
  }
  return undefined(name, whole);
}

// An element by its number, from the end if it is negative.
Value element(TemplateRuntime& runtime, const Value& object, const Value& key) {
  std::int64_t buffer = 0;
  const std::int64_t* number = integer_of(key, buffer);
  if (number == nullptr) {
    return undefined("the element", object);
  }
  const ValueList* list = object.list();
  if (list != nullptr) {
    const auto size = static_cast<std::int64_t>(list->items.size());
    const std::int64_t at = *number < 0 ? *number + size : *number;
    const bool numbered =
        list->kind != ValueList::Kind::kView && list->kind != ValueList::Kind::kIterator;
    return numbered && at >= 0 && at < size ? list->items[static_cast<std::size_t>(at)]
                                            : undefined("the element", object);
  }
  const MarkedText& text = *object.get<MarkedText>();
  const auto size = static_cast<std::int64_t>(num_characters(text.bytes));
  const std::int64_t at = *number < 0 ? *number + size : *number;
  if (at < 0 || at >= size) {
    return undefined("the character", object);
  }
  const std::size_t begin = bytes_of_characters(text.bytes, static_cast<std::size_t>(at));
  const std::size_t length = first_character(text.bytes.substr(begin)).length;
  return Value{runtime.slice(text, begin, begin + length)};
}

Result<Value> method_value(const TemplateRuntime& runtime, const Value& object,
                           std::string_view name) {
  return runtime.error(std::string(type_name(object)) + " method " + in_quotes(name) +
                           " used without calling it is not supported",
                       ErrorCode::kUnsupported);
}

}  // namespace

Result<Value> attribute_of(TemplateRuntime& runtime, const Value& object, std::string_view name) {
  TIDEKV_TRY(check_defined(runtime, object));
  TIDEKV_TRY(runtime.step());
  if (const auto* loop = object.get<const LoopState*>()) {
    return loop_attribute(**loop, name);
  }
  if (Namespace* const* space = object.get<Namespace*>()) {
    for (const auto& [other, value] : (*space)->attributes) {
      TIDEKV_TRY(runtime.step(other.size()));
      if (other == name) {
        return value;
      }
    }
    return undefined(name, object);
  }
  if (find_method(object, name) != nullptr) {
    return method_value(runtime, object, name);
  }
  if (const ValueDict* dict = object.dict()) {
    TIDEKV_ASSIGN(const Value* found, find_key(runtime, *dict, Value{MarkedText{.bytes = name}}));
    if (found != nullptr) {
      return *found;
    }
  }
  return undefined(name, object);
}

Result<Value> item_of(TemplateRuntime& runtime, const Value& object, const Value& key) {
  TIDEKV_TRY(check_defined(runtime, object));
  const auto* name = key.get<MarkedText>();
  if (const ValueDict* dict = object.dict()) {
    TIDEKV_ASSIGN(const Value* found, find_key(runtime, *dict, key));
    if (found != nullptr) {
      return *found;
    }
    return name == nullptr ? undefined("the key", object) : undefined(name->bytes, object);
  }
  if (name != nullptr) {
    return attribute_of(runtime, object, name->bytes);
  }
  if (object.list() == nullptr && !object.is<MarkedText>()) {
    return undefined("the element", object);
  }
  TIDEKV_TRY(runtime.step(object.is<MarkedText>() ? object.get<MarkedText>()->bytes.size() : 0));
  return element(runtime, object, key);
}

std::string argument_problem(const Builtin& builtin, std::size_t num_positional,
                             const std::vector<std::string_view>& names) {
  const auto end = std::find(builtin.parameters.begin(), builtin.parameters.end(), "");
  const auto num_parameters = static_cast<std::size_t>(end - builtin.parameters.begin());
  if (num_positional > num_parameters && builtin.rest_from < 0) {
    return "takes at most " + std::to_string(num_parameters) + " arguments";
  }
  for (const std::string_view name : names) {
    const auto at = std::find(builtin.parameters.begin(), end, name);
    if (at == end) {
      return "takes no argument " + in_quotes(name);
    }
    if (static_cast<std::size_t>(at - builtin.parameters.begin()) < num_positional) {
      return "argument " + in_quotes(name) + " is given twice";
    }
  }
  for (std::size_t i = num_positional; i < builtin.required; ++i) {
    if (std::find(names.begin(), names.end(), builtin.parameters[i]) == names.end()) {
      return "needs argument " + in_quotes(builtin.parameters[i]);
    }
  }
  return "";
}

Result<Value> call_builtin(TemplateRuntime& runtime, const Builtin& builtin, const Value& value,
                           const CallArguments& arguments) {
  std::vector<std::string_view> names;
  for (const auto& [name, argument] : arguments.named) {
    names.push_back(name);
  }
  const std::string problem = argument_problem(builtin, arguments.positional.size(), names);
  if (!problem.empty()) {
    return runtime.error(in_quotes(builtin.name) + " " + problem);
  }
  BuiltinCall call{.runtime = runtime, .value = value, .args = {}, .rest = {}};
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    if (builtin.rest_from >= 0 && i >= static_cast<std::size_t>(builtin.rest_from)) {
      call.rest.push_back(arguments.positional[i]);
    } else {
      call.args[i] = arguments.positional[i];
    }
  }
  for (const auto& [name, argument] : arguments.named) {
    const auto at = std::find(builtin.parameters.begin(), builtin.parameters.end(), name);
    call.args[static_cast<std::size_t>(at - builtin.parameters.begin())] = argument;
  }
  TIDEKV_TRY(runtime.step());
  return builtin.apply(call);
}

}  // namespace tidekv
