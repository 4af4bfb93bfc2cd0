// Expressions: every node to its value.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "base/json_value.h"
#include "chat/template_interpreter.h"
#include "chat/template_operators.h"

namespace tidekv {

Result<Value> TemplateInterpreter::evaluate(NodeId id, Scope& scope) {
  const Level level(depth_);
  const Node& expression = node(id);
  TIDEKV_TRY(enter(expression));
  switch (expression.kind) {
    case NodeKind::kText:
      return Value{MarkedText{.bytes = expression.text}};
    case NodeKind::kInteger:
      return Value{expression.integer};
    case NodeKind::kFloat:
      return Value{expression.number};
    case NodeKind::kTrue:
    case NodeKind::kFalse:
      return Value{expression.kind == NodeKind::kTrue};
    case NodeKind::kNone:
      return Value{NoneValue{}};
    case NodeKind::kName:
      return variable(expression, scope);
    case NodeKind::kList:
      return list(expression, scope, ValueList::Kind::kList);
    case NodeKind::kTuple:
      return list(expression, scope, ValueList::Kind::kTuple);
    case NodeKind::kDict:
      return dict(expression, scope);
    case NodeKind::kCompare:
      return comparison(expression, scope);
    case NodeKind::kConcat:
      return concatenation(expression, scope);
    case NodeKind::kConditional:
      return conditional(expression, scope);
    case NodeKind::kSubscript:
      return subscript(expression, scope);
    case NodeKind::kFilter:
      return filtered(expression, scope);
    case NodeKind::kTest:
      return tested(expression, scope);
    case NodeKind::kMethod:
      return method_call(expression, scope);
    case NodeKind::kCall:
      return call(expression, scope);
    default:
      return evaluate_operation(expression, scope);
  }
}

Result<Value> TemplateInterpreter::evaluate_operation(const Node& expression, Scope& scope) {
  TIDEKV_ASSIGN(Value left, evaluate(expression.children[0], scope));
  switch (expression.kind) {
    case NodeKind::kAnd:
    case NodeKind::kOr:
      if (is_true(left) == (expression.kind == NodeKind::kOr)) {
        return left;
      }
      return evaluate(expression.children[1], scope);
    case NodeKind::kNot:
      return Value{!is_true(left)};
    case NodeKind::kNegative:
      runtime_.set_line(expression.line);
      return negative(runtime_, left);
    case NodeKind::kPositive: {
      runtime_.set_line(expression.line);
      if (!is_number(left)) {
        return runtime_.error("operator + does not take " + std::string(type_name(left)));
      }
      std::int64_t buffer = 0;
      return left.is<bool>() ? Value{*integer_of(left, buffer)} : left;
    }
    case NodeKind::kAttribute:
      runtime_.set_line(expression.line);
      return attribute_of(runtime_, left, expression.text);
    default:
      break;
  }
  TIDEKV_ASSIGN(const Value right, evaluate(expression.children[1], scope));
  runtime_.set_line(expression.line);
  return binary_operation(runtime_, expression.text, left, right);
}

Result<Value> TemplateInterpreter::variable(const Node& name, const Scope& scope) {
  for (const Scope* at = &scope; at != nullptr; at = at->parent) {
    TIDEKV_TRY(runtime_.step(at->variables.size()));
    for (const auto& [other, value] : at->variables) {
      if (other == name.text) {
        return value;
      }
    }
  }
  return Value{Undefined{name.text, ""}};
}

Result<Value> TemplateInterpreter::list(const Node& expression, Scope& scope,
                                        ValueList::Kind kind) {
  std::vector<Value> items;
  for (const NodeId child : expression.children) {
    TIDEKV_ASSIGN(Value item, evaluate(child, scope));
    items.push_back(item);
  }
  return runtime_.list(std::move(items), kind);
}

Result<Value> TemplateInterpreter::dict(const Node& expression, Scope& scope) {
  std::vector<std::pair<Value, Value>> entries;
  for (std::size_t i = 0; i + 1 < expression.children.size(); i += 2) {
    TIDEKV_ASSIGN(Value key, evaluate(expression.children[i], scope));
    TIDEKV_ASSIGN(Value value, evaluate(expression.children[i + 1], scope));
    TIDEKV_TRY(put_entry(runtime_, entries, key, value));
  }
  return runtime_.dict(std::move(entries));
}

namespace {

Result<bool> compare(TemplateRuntime& runtime, const std::string& operation, const Value& left,
                     const Value& right) {
  if (operation == "==" || operation == "!=") {
    TIDEKV_ASSIGN(const bool same, equals(runtime, left, right));
    return same == (operation == "==");
  }
  if (operation == "in" || operation == "not in") {
    TIDEKV_ASSIGN(const bool found, contains(runtime, right, left));
    return found == (operation == "in");
  }
  const bool swaps = operation == ">" || operation == "<=";
  TIDEKV_ASSIGN(const bool less,
                swaps ? is_less(runtime, right, left) : is_less(runtime, left, right));
  return less == (operation == "<" || operation == ">");
}

}  // namespace

Result<Value> TemplateInterpreter::comparison(const Node& expression, Scope& scope) {
  TIDEKV_ASSIGN(Value left, evaluate(expression.children[0], scope));
  for (std::size_t i = 0; i < expression.names.size(); ++i) {
    TIDEKV_ASSIGN(Value right, evaluate(expression.children[i + 1], scope));
    runtime_.set_line(expression.line);
    TIDEKV_ASSIGN(const bool holds, compare(runtime_, expression.names[i], left, right));
    if (!holds) {
      return Value{false};
    }
    left = right;
  }
  return Value{true};
}

Result<Value> TemplateInterpreter::concatenation(const Node& expression, Scope& scope) {
  TextBuilder builder;
  for (const NodeId child : expression.children) {
    TIDEKV_ASSIGN(const Value part, evaluate(child, scope));
    runtime_.set_line(expression.line);
    TIDEKV_ASSIGN(const MarkedText text, to_text(runtime_, part));
    TIDEKV_TRY(runtime_.append(builder, text));
  }
  return Value{runtime_.text(builder)};
}

Result<Value> TemplateInterpreter::conditional(const Node& expression, Scope& scope) {
  TIDEKV_ASSIGN(const Value condition, evaluate(expression.children[0], scope));
  if (is_true(condition)) {
    return evaluate(expression.children[1], scope);
  }
  if (expression.children[2] == kNoNode) {
    return Value{Undefined{"the value of an 'if' without 'else'", ""}};
  }
  return evaluate(expression.children[2], scope);
}

Result<Value> TemplateInterpreter::subscript(const Node& expression, Scope& scope) {
  TIDEKV_ASSIGN(const Value object, evaluate(expression.children[0], scope));
  const Node& key_node = node(expression.children[1]);
  if (key_node.kind == NodeKind::kSlice) {
    return slice(key_node, object, scope);
  }
  TIDEKV_ASSIGN(const Value key, evaluate(expression.children[1], scope));
  runtime_.set_line(expression.line);
  return item_of(runtime_, object, key);
}

namespace {

struct SliceBounds {
  std::int64_t start = 0;
  std::int64_t stop = 0;
  std::int64_t step = 1;
};

// Python's rules: negative counts from the end, and everything is clipped.
SliceBounds clipped(const std::optional<std::int64_t>& start,
                    const std::optional<std::int64_t>& stop, std::int64_t step, std::int64_t size) {
  const std::int64_t lowest = step < 0 ? -1 : 0;
  const std::int64_t highest = step < 0 ? size - 1 : size;
  const auto clip = [&](std::int64_t at) {
    return std::clamp(at < 0 ? at + size : at, lowest, highest);
  };
  return {.start = start ? clip(*start) : (step < 0 ? highest : lowest),
          .stop = stop ? clip(*stop) : (step < 0 ? lowest : highest),
          .step = step};
}

Result<Value> text_slice(TemplateRuntime& runtime, const MarkedText& text, const SliceBounds& at) {
  if (at.step == 1) {
    const std::size_t begin = bytes_of_characters(text.bytes, static_cast<std::size_t>(at.start));
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(at.stop - at.start, 0));
    const std::size_t length = bytes_of_characters(text.bytes.substr(begin), count);
    return Value{runtime.slice(text, begin, begin + length)};
  }
  TIDEKV_ASSIGN(const std::vector<Value>* characters, items_of(runtime, Value{text}));
  TextBuilder builder;
  for (std::int64_t i = at.start; at.step > 0 ? i < at.stop : i > at.stop; i += at.step) {
    TIDEKV_TRY(
        runtime.append(builder, *(*characters)[static_cast<std::size_t>(i)].get<MarkedText>()));
  }
  MarkedText made = runtime.text(builder);
  made.markup = text.markup;
  return Value{made};
}

}  // namespace

Result<Value> TemplateInterpreter::slice(const Node& bounds, const Value& object, Scope& scope) {
  std::optional<std::int64_t> parts[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (bounds.children[i] == kNoNode) {
      continue;
    }
    TIDEKV_ASSIGN(const Value part, evaluate(bounds.children[i], scope));
    std::int64_t buffer = 0;
    const std::int64_t* number = integer_of(part, buffer);
    if (number == nullptr && !part.is<NoneValue>()) {
      return runtime_.error("a slice takes integers, not " + std::string(type_name(part)));
    }
    if (number != nullptr) {  // far outside any text, and far from overflow
      constexpr std::int64_t kFar = std::int64_t{1} << 40;
      parts[i] = std::clamp(*number, -kFar, kFar);
    }
  }
  runtime_.set_line(bounds.line);
  TIDEKV_TRY(check_defined(runtime_, object));
  const std::int64_t step = parts[2].value_or(1);
  if (step == 0) {
    return runtime_.error("the step of a slice is 0");
  }
  if (const auto* text = object.get<MarkedText>()) {
    TIDEKV_TRY(runtime_.step(text->bytes.size()));
    const auto size = static_cast<std::int64_t>(num_characters(text->bytes));
    return text_slice(runtime_, *text, clipped(parts[0], parts[1], step, size));
  }
  const ValueList* whole = object.list();
  if (whole == nullptr || whole->kind == ValueList::Kind::kView ||
      whole->kind == ValueList::Kind::kIterator) {
    return runtime_.error("a " + std::string(type_name(object)) + " has no slices");
  }
  const SliceBounds at =
      clipped(parts[0], parts[1], step, static_cast<std::int64_t>(whole->items.size()));
  std::vector<Value> items;
  for (std::int64_t i = at.start; step > 0 ? i < at.stop : i > at.stop; i += step) {
    items.push_back(whole->items[static_cast<std::size_t>(i)]);
  }
  return runtime_.list(std::move(items), whole->kind);
}

}  // namespace tidekv
