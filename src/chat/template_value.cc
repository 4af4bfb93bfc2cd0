#include "chat/template_value.h"

namespace tidekv {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

std::string_view list_type_name(ValueList::Kind kind) {
  switch (kind) {
    case ValueList::Kind::kList:
      return "list";
    case ValueList::Kind::kTuple:
      return "tuple";
    case ValueList::Kind::kRange:
      return "range";
    case ValueList::Kind::kView:
      return "dict view";
    case ValueList::Kind::kIterator:
      return "generator";
  }
  return "list";
}

}  // namespace

bool is_true(const Value& value) {
  return std::visit(Overloaded{
                        [](const Undefined&) { return false; },
                        [](const NoneValue&) { return false; },
                        [](bool flag) { return flag; },
                        [](std::int64_t number) { return number != 0; },
                        [](double number) { return number != 0.0; },
                        [](const MarkedText& text) { return !text.bytes.empty(); },
                        [](ValueList* list) {  // its exact type, or the last one takes it
                          return list->kind == ValueList::Kind::kIterator || !list->items.empty();
                        },
                        [](const ValueDict* dict) { return !dict->entries.empty(); },
                        [](const auto&) { return true; },
                    },
                    value.data);
}

int depth_of(const Value& value) {
  if (const ValueList* list = value.list()) {
    return list->depth;
  }
  const ValueDict* dict = value.dict();
  return dict == nullptr ? 0 : dict->depth;
}

std::string_view type_name(const Value& value) {
  return std::visit(
      Overloaded{
          [](const Undefined&) -> std::string_view { return "Undefined"; },
          [](const NoneValue&) -> std::string_view { return "NoneType"; },
          [](bool) -> std::string_view { return "bool"; },
          [](std::int64_t) -> std::string_view { return "int"; },
          [](double) -> std::string_view { return "float"; },
          [](const MarkedText&) -> std::string_view { return "str"; },
          [](ValueList* list) -> std::string_view { return list_type_name(list->kind); },
          [](const ValueDict*) -> std::string_view { return "dict"; },
          [](const Namespace*) -> std::string_view { return "namespace"; },
          [](const LoopState*) -> std::string_view { return "loop"; },
          [](const Macro*) -> std::string_view { return "macro"; },
          [](GlobalFunction) -> std::string_view { return "function"; },
      },
      value.data);
}

const std::int64_t* integer_of(const Value& value, std::int64_t& buffer) {
  if (const bool* flag = value.get<bool>()) {
    buffer = *flag ? 1 : 0;
    return &buffer;
  }
  return value.get<std::int64_t>();
}

bool is_number(const Value& value) {
  return value.is<bool>() || value.is<std::int64_t>() || value.is<double>();
}

double number_of(const Value& value) {
  if (const double* number = value.get<double>()) {
    return *number;
  }
  std::int64_t buffer = 0;
  const std::int64_t* number = integer_of(value, buffer);
  return number == nullptr ? 0.0 : static_cast<double>(*number);
}

}  // namespace tidekv
