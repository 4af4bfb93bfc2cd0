// Jinja's filters.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "base/json_value.h"
#include "chat/template_builtins.h"
#include "chat/template_case.h"
#include "chat/template_json.h"
#include "chat/template_list_filters.h"
#include "chat/template_operators.h"
#include "chat/template_text_operations.h"

namespace tidekv {
namespace {

Result<Value> value_of(Result<MarkedText> text) {
  if (!text.ok()) {
    return std::move(text).error();
  }
  return Value{text.value()};
}

// The text of the value, changed by `change`.
template <typename Change>
Result<Value> on_text(BuiltinCall& call, Change change) {
  TIDEKV_ASSIGN(const MarkedText text, to_text(call.runtime, call.value));
  return value_of(change(call.runtime, text));
}

bool flag(const BuiltinCall& call, std::size_t i, bool fallback = false) {
  return call.args[i] ? is_true(*call.args[i]) : fallback;
}

Result<Value> default_filter(BuiltinCall& call) {
  if (call.value.is<Undefined>() || (flag(call, 1) && !is_true(call.value))) {
    return call.args[0] ? *call.args[0] : Value{MarkedText{}};
  }
  return call.value;
}

Result<Value> trim(BuiltinCall& call) {
  TIDEKV_ASSIGN(const MarkedText text, to_text(call.runtime, call.value));
  if (!call.args[0] || call.args[0]->is<NoneValue>()) {
    return value_of(stripped(call.runtime, text, nullptr, StripEnds::kBoth));
  }
  const auto* set = call.args[0]->get<MarkedText>();
  if (set == nullptr) {
    return call.runtime.error("trim takes a string of characters");
  }
  return value_of(stripped(call.runtime, text, set, StripEnds::kBoth));
}

Result<Value> length(BuiltinCall& call) {
  if (const auto* text = call.value.get<MarkedText>()) {
    TIDEKV_TRY(call.runtime.step(text->bytes.size()));
    return Value{static_cast<std::int64_t>(num_characters(text->bytes))};
  }
  if (call.value.is<Undefined>()) {
    return Value{std::int64_t{0}};
  }
  if (const ValueDict* dict = call.value.dict()) {
    return Value{static_cast<std::int64_t>(dict->entries.size())};
  }
  const ValueList* list = call.value.list();
  if (list == nullptr || list->kind == ValueList::Kind::kIterator) {
    return call.runtime.error("a " + std::string(type_name(call.value)) + " has no length");
  }
  return Value{static_cast<std::int64_t>(list->items.size())};
}

Result<Value> upper(BuiltinCall& call) { return on_text(call, upper_case); }
Result<Value> lower(BuiltinCall& call) { return on_text(call, lower_case); }
Result<Value> capitalize(BuiltinCall& call) { return on_text(call, capitalized); }
Result<Value> title(BuiltinCall& call) { return on_text(call, title_words); }

Result<Value> string(BuiltinCall& call) { return value_of(to_text(call.runtime, call.value)); }

Result<Value> safe(BuiltinCall& call) {
  TIDEKV_ASSIGN(MarkedText text, to_text(call.runtime, call.value));
  text.markup = true;
  return Value{text};
}

Result<Value> replace(BuiltinCall& call) {
  TIDEKV_ASSIGN(const MarkedText text, to_text(call.runtime, call.value));
  TIDEKV_ASSIGN(const MarkedText old_part, to_text(call.runtime, *call.args[0]));
  TIDEKV_ASSIGN(const MarkedText new_part, to_text(call.runtime, *call.args[1]));
  std::int64_t buffer = 0;
  const std::int64_t* count = call.args[2] ? integer_of(*call.args[2], buffer) : nullptr;
  return value_of(replaced(call.runtime, text, old_part, new_part, count == nullptr ? -1 : *count));
}

Result<Value> join(BuiltinCall& call) {
  MarkedText separator;
  if (call.args[0]) {
    TIDEKV_ASSIGN(separator, to_text(call.runtime, *call.args[0]));
  }
  Value list = call.value;
  if (call.args[1]) {
    TIDEKV_ASSIGN(list, with_attribute(call.runtime, call.value, *call.args[1]));
  }
  return value_of(joined_list(call.runtime, separator, list, ListTexts::kAnything));
}

Result<Value> tojson(BuiltinCall& call) {
  JsonStyle style{.ascii_only = flag(call, 0), .sort_keys = flag(call, 3)};
  if (call.args[2] && !call.args[2]->is<NoneValue>()) {
    return call.runtime.error("tojson with separators is not supported", ErrorCode::kUnsupported);
  }
  if (call.args[1] && !call.args[1]->is<NoneValue>()) {
    style.indented = true;
    std::int64_t buffer = 0;
    if (const std::int64_t* width = integer_of(*call.args[1], buffer)) {
      if (*width > 64) {
        return call.runtime.error("tojson indented by " + std::to_string(*width) +
                                  "; expected at most 64");
      }
      style.indent = call.runtime.text(
          std::string(static_cast<std::size_t>(std::max<std::int64_t>(*width, 0)), ' '));
    } else if (const auto* text = call.args[1]->get<MarkedText>()) {
      style.indent = *text;
    } else {
      return call.runtime.error("tojson: indent is a number or a string");
    }
  }
  return value_of(to_json(call.runtime, call.value, style));
}

Result<MarkedText> indentation(const BuiltinCall& call) {
  if (!call.args[0]) {
    return call.runtime.text("    ");
  }
  if (const auto* text = call.args[0]->get<MarkedText>()) {
    return *text;
  }
  std::int64_t buffer = 0;
  const std::int64_t* width = integer_of(*call.args[0], buffer);
  if (width == nullptr || *width > 1000) {
    return call.runtime.error("indent: width is a string or a number up to 1000");
  }
  return call.runtime.text(
      std::string(static_cast<std::size_t>(std::max<std::int64_t>(*width, 0)), ' '));
}

Result<Value> indent(BuiltinCall& call) {
  const auto* given = call.value.get<MarkedText>();
  if (given == nullptr) {
    return call.runtime.error("indent takes a string, not " + std::string(type_name(call.value)));
  }
  const MarkedText text = *given;
  TIDEKV_ASSIGN(const MarkedText space, indentation(call));
  TextBuilder whole;  // Jinja adds a newline so that splitlines() shows a last empty line
  TIDEKV_TRY(call.runtime.append(whole, text));
  whole.append("\n");
  TIDEKV_ASSIGN(const std::vector<Value> lines, lines_of(call.runtime, call.runtime.text(whole)));
  TextBuilder builder;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const MarkedText& line = *lines[i].get<MarkedText>();
    if (i > 0) {
      builder.append("\n");
    }
    if (i == 0 ? flag(call, 1) : (flag(call, 2) || !line.bytes.empty())) {
      TIDEKV_TRY(call.runtime.append(builder, space));
    }
    TIDEKV_TRY(call.runtime.append(builder, line));
  }
  return Value{call.runtime.text(builder)};
}

// The number that `text` spells as Python's float() reads it; nothing if it spells none.
std::optional<double> parse_float(std::string_view text) {
  text.remove_prefix(python_space_at_start(text));
  text.remove_suffix(python_space_at_end(text));
  if (text.starts_with('+')) {
    text.remove_prefix(1);
  }
  if (text.empty() || text.find_first_not_of("-.0123456789eE+") != std::string_view::npos ||
      text.starts_with('+')) {
    return std::nullopt;
  }
  double number = 0.0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() && end.ptr == text.data() + text.size()
             ? std::optional<double>(number)
             : std::nullopt;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  text.remove_prefix(python_space_at_start(text));
  text.remove_suffix(python_space_at_end(text));
  if (text.starts_with('+') && !text.starts_with("+-")) {
    text.remove_prefix(1);
  }
  std::int64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ec == std::errc() && end.ptr == text.data() + text.size()
             ? std::optional<std::int64_t>(number)
             : std::nullopt;
}

Result<Value> whole_number(const BuiltinCall& call, double number) {
  if (!(std::fabs(number) < 9.2e18)) {
    return call.runtime.error("a number outside 64 bits");
  }
  return Value{static_cast<std::int64_t>(number)};
}

Result<Value> to_integer(BuiltinCall& call) {
  TIDEKV_TRY(check_defined(call.runtime, call.value));
  std::int64_t buffer = 0;
  if (const std::int64_t* number = integer_of(call.value, buffer)) {
    return Value{*number};
  }
  if (const double* number = call.value.get<double>()) {
    return whole_number(call, *number);
  }
  if (const auto* text = call.value.get<MarkedText>()) {
    TIDEKV_TRY(call.runtime.step(text->bytes.size()));
    if (const auto number = parse_integer(text->bytes)) {
      return Value{*number};
    }
    if (const auto number = parse_float(text->bytes)) {
      return whole_number(call, *number);
    }
  }
  return call.args[0] ? *call.args[0] : Value{std::int64_t{0}};
}

Result<Value> to_float(BuiltinCall& call) {
  TIDEKV_TRY(check_defined(call.runtime, call.value));
  if (is_number(call.value)) {
    return Value{number_of(call.value)};
  }
  if (const auto* text = call.value.get<MarkedText>()) {
    TIDEKV_TRY(call.runtime.step(text->bytes.size()));
    if (const auto number = parse_float(text->bytes)) {
      return Value{*number};
    }
  }
  return call.args[0] ? *call.args[0] : Value{0.0};
}

Result<Value> absolute(BuiltinCall& call) {
  if (!is_number(call.value)) {
    return call.runtime.error("abs takes a number, not " + std::string(type_name(call.value)));
  }
  if (call.value.is<double>()) {
    return Value{std::fabs(number_of(call.value))};
  }
  std::int64_t buffer = 0;
  const std::int64_t* number = integer_of(call.value, buffer);
  return *number < 0 ? negative(call.runtime, Value{*number}) : Result<Value>(Value{*number});
}

constexpr std::array kFilters = {
    Builtin{"abs", absolute, 0, {}},
    Builtin{"capitalize", capitalize, 0, {}},
    Builtin{"count", length, 0, {}},
    Builtin{"d", default_filter, 0, {"default_value", "boolean"}},
    Builtin{"default", default_filter, 0, {"default_value", "boolean"}},
    Builtin{"dictsort", sorted_dict, 0, {"case_sensitive", "by", "reverse"}},
    Builtin{"first", first_item, 0, {}},
    Builtin{"float", to_float, 0, {"default"}},
    Builtin{"indent", indent, 0, {"width", "first", "blank"}},
    Builtin{"int", to_integer, 0, {"default"}},
    Builtin{"items", dict_pairs, 0, {}},
    Builtin{"join", join, 0, {"d", "attribute"}},
    Builtin{"last", last_item, 0, {}},
    Builtin{"length", length, 0, {}},
    Builtin{"list", as_list, 0, {}},
    Builtin{"lower", lower, 0, {}},
    Builtin{"map", map_items, 0, {"filter", "attribute", "default"}, 1},
    Builtin{"max", largest, 0, {"case_sensitive", "attribute"}},
    Builtin{"min", smallest, 0, {"case_sensitive", "attribute"}},
    Builtin{"reject", reject_items, 0, {"test"}, 1},
    Builtin{"rejectattr", reject_by_attribute, 1, {"attribute", "test"}, 2},
    Builtin{"replace", replace, 2, {"old", "new", "count"}},
    Builtin{"reverse", reversed_items, 0, {}},
    Builtin{"safe", safe, 0, {}},
    Builtin{"select", select_items, 0, {"test"}, 1},
    Builtin{"selectattr", select_by_attribute, 1, {"attribute", "test"}, 2},
    Builtin{"sort", sorted_items, 0, {"reverse", "case_sensitive", "attribute"}},
    Builtin{"string", string, 0, {}},
    Builtin{"sum", sum_of_items, 0, {"attribute", "start"}},
    Builtin{"title", title, 0, {}},
    Builtin{"tojson", tojson, 0, {"ensure_ascii", "indent", "separators", "sort_keys"}},
    Builtin{"trim", trim, 0, {"chars"}},
    Builtin{"unique", unique_items, 0, {"case_sensitive", "attribute"}},
    Builtin{"upper", upper, 0, {}},
};

}  // namespace

const Builtin* find_filter(std::string_view name) { return find_builtin(kFilters, name); }

}  // namespace tidekv
