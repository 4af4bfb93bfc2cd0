// Filters, tests, methods, functions and macros, applied to evaluated arguments.
#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "base/json_value.h"
#include "chat/template_interpreter.h"
#include "chat/template_operators.h"

namespace tidekv {

Result<CallArguments> TemplateInterpreter::arguments(const Node& call_node, std::size_t first,
                                                     Scope& scope) {
  CallArguments made;
  for (std::size_t i = first; i < call_node.children.size(); ++i) {
    TIDEKV_ASSIGN(Value value, evaluate(call_node.children[i], scope));
    made.positional.push_back(value);
  }
  for (const auto& [name, child] : call_node.named) {
    TIDEKV_ASSIGN(Value value, evaluate(child, scope));
    made.named.emplace_back(name, value);
  }
  runtime_.set_line(call_node.line);
  return made;
}

Result<Value> TemplateInterpreter::filtered(const Node& filter, Scope& scope) {
  TIDEKV_ASSIGN(const Value value, evaluate(filter.children[0], scope));
  TIDEKV_ASSIGN(const CallArguments given, arguments(filter, 1, scope));
  return call_builtin(runtime_, *find_filter(filter.text), value, given);
}

Result<Value> TemplateInterpreter::apply_filters(NodeId id, const Value& value, Scope& scope) {
  const Level level(depth_);
  const Node& filter = node(id);
  TIDEKV_TRY(enter(filter));
  Value input = value;
  if (filter.children[0] != kNoNode) {
    TIDEKV_ASSIGN(input, apply_filters(filter.children[0], value, scope));
  }
  TIDEKV_ASSIGN(const CallArguments given, arguments(filter, 1, scope));
  return call_builtin(runtime_, *find_filter(filter.text), input, given);
}

Result<Value> TemplateInterpreter::tested(const Node& test, Scope& scope) {
  TIDEKV_ASSIGN(const Value value, evaluate(test.children[0], scope));
  TIDEKV_ASSIGN(const CallArguments given, arguments(test, 1, scope));
  return call_builtin(runtime_, *find_test(test.text), value, given);
}

Result<Value> TemplateInterpreter::method_call(const Node& method, Scope& scope) {
  TIDEKV_ASSIGN(const Value object, evaluate(method.children[0], scope));
  TIDEKV_ASSIGN(const CallArguments given, arguments(method, 1, scope));
  TIDEKV_TRY(check_defined(runtime_, object));
  const Builtin* builtin = find_method(object, method.text);
  if (builtin == nullptr || builtin->apply == nullptr) {
    return runtime_.error("a " + std::string(type_name(object)) + " has no method " +
                          in_quotes(method.text));
  }
  return call_builtin(runtime_, *builtin, object, given);
}

Result<Value> TemplateInterpreter::call(const Node& call_node, Scope& scope) {
  TIDEKV_ASSIGN(const Value callee, variable(call_node, scope));
  TIDEKV_ASSIGN(CallArguments given, arguments(call_node, 0, scope));
  if (const auto* macro = callee.get<const Macro*>()) {
    return call_macro(**macro, std::move(given));
  }
  if (const auto* function = callee.get<GlobalFunction>()) {
    return call_function(*function, given);
  }
  TIDEKV_TRY(check_defined(runtime_, callee));
  return runtime_.error(in_quotes(call_node.text) + " is a " + std::string(type_name(callee)) +
                        " and cannot be called");
}

Status TemplateInterpreter::bind_parameters(const Node& macro, CallArguments given, Scope& scope) {
  const std::string name = "macro " + in_quotes(macro.text);
  if (given.positional.size() > macro.names.size()) {
    return runtime_.error(name + " takes at most " + std::to_string(macro.names.size()) +
                          " arguments, not " + std::to_string(given.positional.size()));
  }
  for (std::size_t i = 0; i < macro.names.size(); ++i) {
    Value value{Undefined{macro.names[i], "the call"}};
    bool found = i < given.positional.size();
    if (found) {
      value = given.positional[i];
    }
    for (auto argument = given.named.begin(); argument != given.named.end(); ++argument) {
      if (argument->first != macro.names[i]) {
        continue;
      }
      if (found) {
        return runtime_.error(name + ": argument " + in_quotes(macro.names[i]) + " is given twice");
      }
      value = argument->second;
      found = true;
      given.named.erase(argument);
      break;
    }
    if (!found && macro.children[i + 1] != kNoNode) {
      TIDEKV_ASSIGN(value, evaluate(macro.children[i + 1], scope));
    }
    TIDEKV_TRY(set_variable(scope, macro.names[i], value));
  }
  if (!given.named.empty()) {
    return runtime_.error(name + " takes no argument " + in_quotes(given.named[0].first));
  }
  return Ok{};
}

Result<Value> TemplateInterpreter::call_macro(const Macro& macro, CallArguments given) {
  const Level level(depth_);
  const Node& definition = node(macro.node);
  Scope* scope = runtime_.make_scope(macro.scope);
  TIDEKV_TRY(bind_parameters(definition, std::move(given), *scope));
  TextBuilder out;
  TIDEKV_TRY(execute(definition.children[0], *scope, out));
  runtime_.release_scope(*scope);
  return Value{runtime_.text(out)};
}

namespace {

constexpr std::int64_t kMaxRange = 100'000;  // as in Jinja's sandbox

Result<Value> make_range(TemplateRuntime& runtime, const CallArguments& given) {
  std::array<std::int64_t, 3> bounds = {0, 0, 1};
  const std::size_t count = given.positional.size();
  if (count < 1 || count > 3 || !given.named.empty()) {
    return runtime.error("range takes one to three integers");
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t buffer = 0;
    const std::int64_t* number = integer_of(given.positional[i], buffer);
    if (number == nullptr) {
      return runtime.error("range takes integers, not " +
                           std::string(type_name(given.positional[i])));
    }
    bounds[count == 1 ? 1 : i] = *number;
  }
  const auto [start, stop, step] = bounds;
  if (step == 0) {
    return runtime.error("range: the step is 0");
  }
  std::vector<Value> items;
  for (std::int64_t at = start; step > 0 ? at < stop : at > stop;) {
    if (items.size() >= static_cast<std::size_t>(kMaxRange)) {
      return runtime.error("range of more than " + std::to_string(kMaxRange) + " numbers");
    }
    items.push_back(Value{at});
    if (__builtin_add_overflow(at, step, &at)) {
      break;
    }
  }
  return runtime.list(std::move(items), ValueList::Kind::kRange);
}

// dict(name=value, ...) and namespace(name=value, ...), each also with a dict before them.
Result<std::vector<std::pair<Value, Value>>> named_entries(TemplateRuntime& runtime,
                                                           const CallArguments& given) {
  std::vector<std::pair<Value, Value>> entries;
  if (given.positional.size() > 1 ||
      (given.positional.size() == 1 && given.positional[0].dict() == nullptr)) {
    return runtime.error("dict and namespace take name=value, or a dict");
  }
  if (given.positional.size() == 1) {
    entries = given.positional[0].dict()->entries;
  }
  for (const auto& [name, value] : given.named) {
    TIDEKV_TRY(put_entry(runtime, entries, Value{MarkedText{.bytes = name}}, value));
  }
  return entries;
}

Result<Value> fill_namespace(TemplateRuntime& runtime, const CallArguments& given) {
  TIDEKV_ASSIGN(const auto entries, named_entries(runtime, given));
  Namespace* space = runtime.make_namespace();
  for (const auto& [key, value] : entries) {
    const auto* name = key.get<MarkedText>();
    if (name == nullptr || name->bytes.starts_with('_')) {
      return runtime.error("an attribute of a namespace is a name without leading underscore");
    }
    runtime.count_variable();
    space->attributes.emplace_back(name->bytes, value);
  }
  return Value{space};
}

// Python's strftime in the C locale. Empty: not supported.
std::string date_part(char directive, const std::tm& time) {
  constexpr std::array<const char*, 12> kMonths = {"January",   "February", "March",    "April",
                                                   "May",       "June",     "July",     "August",
                                                   "September", "October",  "November", "December"};
  constexpr std::array<const char*, 7> kDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                "Thursday", "Friday", "Saturday"};
  const auto digits = [](int number, int width) {
    std::array<char, 16> out{};
    std::snprintf(out.data(), out.size(), "%0*d", width, number);
    return std::string(out.data());
  };
  std::string month = kMonths[static_cast<std::size_t>(time.tm_mon)];
  std::string day = kDays[static_cast<std::size_t>(time.tm_wday)];
  switch (directive) {
    case 'Y':
      return digits(time.tm_year + 1900, 4);
    case 'y':
      return digits((time.tm_year + 1900) % 100, 2);
    case 'm':
      return digits(time.tm_mon + 1, 2);
    case 'd':
      return digits(time.tm_mday, 2);
    case 'j':
      return digits(time.tm_yday + 1, 3);
    case 'H':
      return digits(time.tm_hour, 2);
    case 'I':
      return digits(time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12, 2);
    case 'M':
      return digits(time.tm_min, 2);
    case 'S':
      return digits(time.tm_sec, 2);
    case 'p':
      return time.tm_hour < 12 ? "AM" : "PM";
    case 'B':
      return month;
    case 'b':
      return month.substr(0, 3);
    case 'A':
      return day;
    case 'a':
      return day.substr(0, 3);
    case '%':
      return "%";
    default:
      return "";
  }
}

bool is_calendar_time(const std::tm& time) {
  return time.tm_mon >= 0 && time.tm_mon < 12 && time.tm_wday >= 0 && time.tm_wday < 7 &&
         time.tm_mday >= 1 && time.tm_mday <= 31 && time.tm_hour >= 0 && time.tm_hour < 24 &&
         time.tm_year >= -1900 && time.tm_year < 8100;
}

Result<Value> format_time(TemplateRuntime& runtime, const CallArguments& given) {
  const auto* format =
      given.positional.size() == 1 ? given.positional[0].get<MarkedText>() : nullptr;
  const std::optional<std::tm>& time = runtime.local_time();
  if (format == nullptr || !time || !is_calendar_time(*time)) {
    return runtime.error("strftime_now takes one string, and needs a date that exists");
  }
  TextBuilder builder;
  for (std::size_t at = 0; at < format->bytes.size(); ++at) {
    if (format->bytes[at] != '%') {
      TIDEKV_TRY(runtime.append(builder, *format, at, at + 1));
      continue;
    }
    const char directive = at + 1 < format->bytes.size() ? format->bytes[at + 1] : '\0';
    const std::string part = date_part(directive, *time);
    if (part.empty()) {
      return runtime.error(
          "strftime_now: " + in_quotes(format->bytes.substr(at, 2)) + " is not supported",
          ErrorCode::kUnsupported);
    }
    TIDEKV_TRY(runtime.append(builder, MarkedText{.bytes = part}));
    ++at;
  }
  return Value{runtime.text(builder)};
}

}  // namespace

Result<Value> TemplateInterpreter::call_function(GlobalFunction function,
                                                 const CallArguments& given) {
  switch (function) {
    case GlobalFunction::kRange:
      return make_range(runtime_, given);
    case GlobalFunction::kNamespace:
      return fill_namespace(runtime_, given);
    case GlobalFunction::kDict: {
      TIDEKV_ASSIGN(auto entries, named_entries(runtime_, given));
      return runtime_.dict(std::move(entries));
    }
    case GlobalFunction::kStrftimeNow:
      return format_time(runtime_, given);
    case GlobalFunction::kRaiseException:
      break;
  }
  MarkedText message{.bytes = "no message"};
  if (!given.positional.empty()) {
    TIDEKV_ASSIGN(message, to_text(runtime_, given.positional[0]));
  }
  return runtime_.error("the template refuses this chat: " + printable(message.bytes),
                        ErrorCode::kInvalidArgument);
}

}  // namespace tidekv
