// Jinja's tests: what stands behind `is`.
#include <algorithm>
#include <array>
#include <string>

#include "chat/template_builtins.h"
#include "chat/template_operators.h"

namespace tidekv {
namespace {

bool is_iterator(const Value& value) {
  return value.list() != nullptr && value.list()->kind == ValueList::Kind::kIterator;
}
bool is_view(const Value& value) {
  return value.list() != nullptr && value.list()->kind == ValueList::Kind::kView;
}
bool holds_items(const Value& value) {
  return value.is<MarkedText>() || value.list() != nullptr || value.dict() != nullptr ||
         value.is<Undefined>();
}

Result<Value> defined(BuiltinCall& call) { return Value{!call.value.is<Undefined>()}; }
Result<Value> undefined(BuiltinCall& call) { return Value{call.value.is<Undefined>()}; }
Result<Value> none(BuiltinCall& call) { return Value{call.value.is<NoneValue>()}; }
Result<Value> string(BuiltinCall& call) { return Value{call.value.is<MarkedText>()}; }
Result<Value> mapping(BuiltinCall& call) { return Value{call.value.dict() != nullptr}; }
Result<Value> iterable(BuiltinCall& call) { return Value{holds_items(call.value)}; }
Result<Value> sequence(BuiltinCall& call) {
  return Value{holds_items(call.value) && !is_iterator(call.value) && !is_view(call.value)};
}
Result<Value> number(BuiltinCall& call) { return Value{is_number(call.value)}; }
Result<Value> integer(BuiltinCall& call) { return Value{call.value.is<std::int64_t>()}; }
Result<Value> floating(BuiltinCall& call) { return Value{call.value.is<double>()}; }
Result<Value> boolean(BuiltinCall& call) { return Value{call.value.is<bool>()}; }
Result<Value> is_exactly_true(BuiltinCall& call) {
  return Value{call.value.is<bool>() && is_true(call.value)};
}
Result<Value> is_exactly_false(BuiltinCall& call) {
  return Value{call.value.is<bool>() && !is_true(call.value)};
}
Result<Value> callable(BuiltinCall& call) {
  return Value{call.value.is<const Macro*>() || call.value.is<GlobalFunction>() ||
               call.value.is<Undefined>()};
}
Result<Value> escaped(BuiltinCall& call) {
  const auto* text = call.value.get<MarkedText>();
  return Value{text != nullptr && text->markup};
}

// Whether the value's remainder by `divisor` is `wanted`.
Result<Value> has_remainder(BuiltinCall& call, const Value& divisor, std::int64_t wanted) {
  TIDEKV_ASSIGN(const Value rest, binary_operation(call.runtime, "%", call.value, divisor));
  TIDEKV_ASSIGN(const bool same, equals(call.runtime, rest, Value{wanted}));
  return Value{same};
}
Result<Value> odd(BuiltinCall& call) { return has_remainder(call, Value{std::int64_t{2}}, 1); }
Result<Value> even(BuiltinCall& call) { return has_remainder(call, Value{std::int64_t{2}}, 0); }
Result<Value> divisibleby(BuiltinCall& call) { return has_remainder(call, *call.args[0], 0); }

Result<Value> truth(Result<bool> result, bool wanted) {
  if (!result.ok()) {
    return std::move(result).error();
  }
  return Value{result.value() == wanted};
}
Result<Value> equal(BuiltinCall& call) {
  return truth(equals(call.runtime, call.value, *call.args[0]), true);
}
Result<Value> unequal(BuiltinCall& call) {
  return truth(equals(call.runtime, call.value, *call.args[0]), false);
}
Result<Value> less(BuiltinCall& call) {
  return truth(is_less(call.runtime, call.value, *call.args[0]), true);
}
Result<Value> greater(BuiltinCall& call) {
  return truth(is_less(call.runtime, *call.args[0], call.value), true);
}
Result<Value> at_least(BuiltinCall& call) {
  return truth(is_less(call.runtime, call.value, *call.args[0]), false);
}
Result<Value> at_most(BuiltinCall& call) {
  return truth(is_less(call.runtime, *call.args[0], call.value), false);
}
Result<Value> is_in(BuiltinCall& call) {
  return truth(contains(call.runtime, *call.args[0], call.value), true);
}

// Python's `is` has a plain answer for None and booleans only.
Result<Value> sameas(BuiltinCall& call) {
  const Value& other = *call.args[0];
  if (!other.is<NoneValue>() && !other.is<bool>()) {
    return call.runtime.error("the test sameas takes true, false or none", ErrorCode::kUnsupported);
  }
  return Value{call.value.data.index() == other.data.index() &&
               is_true(call.value) == is_true(other)};
}

constexpr std::array kTests = {
    Builtin{"boolean", boolean, 0, {}},        Builtin{"callable", callable, 0, {}},
    Builtin{"defined", defined, 0, {}},        Builtin{"divisibleby", divisibleby, 1, {"num"}},
    Builtin{"eq", equal, 1, {"other"}},        Builtin{"equalto", equal, 1, {"other"}},
    Builtin{"escaped", escaped, 0, {}},        Builtin{"even", even, 0, {}},
    Builtin{"false", is_exactly_false, 0, {}}, Builtin{"float", floating, 0, {}},
    Builtin{"ge", at_least, 1, {"other"}},     Builtin{"greaterthan", greater, 1, {"other"}},
    Builtin{"gt", greater, 1, {"other"}},      Builtin{"in", is_in, 1, {"seq"}},
    Builtin{"integer", integer, 0, {}},        Builtin{"iterable", iterable, 0, {}},
    Builtin{"le", at_most, 1, {"other"}},      Builtin{"lessthan", less, 1, {"other"}},
    Builtin{"lt", less, 1, {"other"}},         Builtin{"mapping", mapping, 0, {}},
    Builtin{"ne", unequal, 1, {"other"}},      Builtin{"none", none, 0, {}},
    Builtin{"number", number, 0, {}},          Builtin{"odd", odd, 0, {}},
    Builtin{"sameas", sameas, 1, {"other"}},   Builtin{"sequence", sequence, 0, {}},
    Builtin{"string", string, 0, {}},          Builtin{"true", is_exactly_true, 0, {}},
    Builtin{"undefined", undefined, 0, {}},
};

}  // namespace

const Builtin* find_test(std::string_view name) { return find_builtin(kTests, name); }

}  // namespace tidekv
