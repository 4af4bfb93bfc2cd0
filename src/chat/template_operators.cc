#include "chat/template_operators.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/json_value.h"

namespace tidekv {
namespace {

constexpr std::int64_t kLowest = std::numeric_limits<std::int64_t>::min();

Error wrong_types(const TemplateRuntime& runtime, std::string_view operation, const Value& left,
                  const Value& right) {
  return runtime.error("operator " + std::string(operation) + " does not take " +
                       std::string(type_name(left)) + " and " + std::string(type_name(right)));
}

Error overflow(const TemplateRuntime& runtime) { return runtime.error("a number outside 64 bits"); }

Result<Value> finite(const TemplateRuntime& runtime, double number) {
  if (!std::isfinite(number)) {
    return overflow(runtime);
  }
  return Value{number};
}

Result<Value> integer_power(const TemplateRuntime& runtime, std::int64_t base,
                            std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) {
      return runtime.error("division by zero");
    }
    return finite(runtime, std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1 || base == -1) {
    return Value{exponent == 0 ? 1 : (base == -1 && exponent % 2 == 0 ? 1 : base)};
  }
  std::int64_t power = 1;
  for (; exponent > 0; --exponent) {  // at most 63 turns before it overflows
    if (__builtin_mul_overflow(power, base, &power)) {
      return overflow(runtime);
    }
  }
  return Value{power};
}

// Python rounds down, and the remainder has the divisor's sign.
Result<Value> integer_division(const TemplateRuntime& runtime, bool remainder, std::int64_t a,
                               std::int64_t b) {
  if (b == 0) {
    return runtime.error("division by zero");
  }
  if (b == -1) {
    if (a == kLowest) {
      return overflow(runtime);
    }
    return Value{remainder ? std::int64_t{0} : -a};
  }
  const bool adjusts = a % b != 0 && (a % b < 0) != (b < 0);
  return Value{remainder ? a % b + (adjusts ? b : 0) : a / b - (adjusts ? 1 : 0)};
}

Result<Value> integer_operation(const TemplateRuntime& runtime, std::string_view operation,
                                std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (operation == "//" || operation == "%") {
    return integer_division(runtime, operation == "%", a, b);
  }
  if (operation == "**") {
    return integer_power(runtime, a, b);
  }
  if (operation == "/") {
    if (b == 0) {
      return runtime.error("division by zero");
    }
    return Value{static_cast<double>(a) / static_cast<double>(b)};
  }
  const bool over = operation == "+"   ? __builtin_add_overflow(a, b, &out)
                    : operation == "-" ? __builtin_sub_overflow(a, b, &out)
                                       : __builtin_mul_overflow(a, b, &out);
  if (over) {
    return overflow(runtime);
  }
  return Value{out};
}

Result<Value> float_operation(const TemplateRuntime& runtime, std::string_view operation, double a,
                              double b) {
  if (b == 0.0 && (operation == "/" || operation == "//" || operation == "%")) {
    return runtime.error("division by zero");
  }
  if (operation == "+") {
    return finite(runtime, a + b);
  }
  if (operation == "-") {
    return finite(runtime, a - b);
  }
  if (operation == "*") {
    return finite(runtime, a * b);
  }
  if (operation == "/") {
    return finite(runtime, a / b);
  }
  if (operation == "**") {
    return finite(runtime, std::pow(a, b));
  }
  double remainder = std::fmod(a, b);
  if (remainder != 0.0 && (remainder < 0.0) != (b < 0.0)) {
    remainder += b;
  }
  if (operation == "%") {
    return finite(runtime, remainder == 0.0 ? std::copysign(0.0, b) : remainder);
  }
  return finite(runtime, std::round((a - remainder) / b));
}

Result<Value> repeated(TemplateRuntime& runtime, const Value& value, std::int64_t count) {
  const auto times = static_cast<std::size_t>(count < 0 ? 0 : count);
  if (const auto* text = value.get<MarkedText>()) {
    TextBuilder builder;
    for (std::size_t i = 0; i < times && !text->bytes.empty(); ++i) {
      TIDEKV_TRY(runtime.append(builder, *text));
    }
    MarkedText made = runtime.text(builder);
    made.markup = text->markup;
    return Value{made};
  }
  std::vector<Value> items;
  for (std::size_t i = 0; i < times && !value.list()->items.empty(); ++i) {
    TIDEKV_TRY(runtime.check_list_size(items.size() + value.list()->items.size()));
    TIDEKV_TRY(runtime.step(value.list()->items.size()));
    items.insert(items.end(), value.list()->items.begin(), value.list()->items.end());
  }
  return runtime.list(std::move(items), value.list()->kind);
}

bool is_sequence(const Value& value) {
  const ValueList* list = value.list();
  return value.is<MarkedText>() || (list != nullptr && (list->kind == ValueList::Kind::kList ||
                                                        list->kind == ValueList::Kind::kTuple));
}

// Texts and lists: + and *.
Result<Value> sequence_operation(TemplateRuntime& runtime, std::string_view operation,
                                 const Value& left, const Value& right) {
  std::int64_t buffer = 0;
  if (operation == "*") {
    const std::int64_t* count = integer_of(is_sequence(left) ? right : left, buffer);
    if (count != nullptr) {
      return repeated(runtime, is_sequence(left) ? left : right, *count);
    }
  }
  if (operation == "+" && left.is<MarkedText>() && right.is<MarkedText>()) {
    TIDEKV_ASSIGN(const MarkedText made,
                  joined(runtime, *left.get<MarkedText>(), *right.get<MarkedText>()));
    return Value{made};
  }
  const ValueList* a = left.list();
  const ValueList* b = right.list();
  if (operation == "+" && a != nullptr && b != nullptr && a->kind == b->kind) {
    TIDEKV_TRY(runtime.check_list_size(a->items.size() + b->items.size()));
    std::vector<Value> items = a->items;
    items.insert(items.end(), b->items.begin(), b->items.end());
    return runtime.list(std::move(items), a->kind);
  }
  return wrong_types(runtime, operation, left, right);
}

}  // namespace

Result<Value> binary_operation(TemplateRuntime& runtime, std::string_view operation,
                               const Value& left, const Value& right) {
  TIDEKV_TRY(check_defined(runtime, left));
  TIDEKV_TRY(check_defined(runtime, right));
  if (operation == "%" && left.is<MarkedText>()) {
    return runtime.error("formatting text with % is not supported", ErrorCode::kUnsupported);
  }
  if (is_sequence(left) || is_sequence(right)) {
    return sequence_operation(runtime, operation, left, right);
  }
  if (!is_number(left) || !is_number(right)) {
    return wrong_types(runtime, operation, left, right);
  }
  if (left.is<double>() || right.is<double>()) {
    return float_operation(runtime, operation, number_of(left), number_of(right));
  }
  std::int64_t a = 0;
  std::int64_t b = 0;
  return integer_operation(runtime, operation, *integer_of(left, a), *integer_of(right, b));
}

Result<Value> negative(TemplateRuntime& runtime, const Value& value) {
  TIDEKV_TRY(check_defined(runtime, value));
  if (const double* number = value.get<double>()) {
    return Value{-*number};
  }
  std::int64_t buffer = 0;
  const std::int64_t* number = integer_of(value, buffer);
  if (number == nullptr) {
    return runtime.error("operator - does not take " + std::string(type_name(value)));
  }
  if (*number == kLowest) {
    return overflow(runtime);
  }
  return Value{-*number};
}

std::string float_text(double number) {
  if (std::isnan(number)) {
    return "nan";
  }
  if (std::isinf(number)) {
    return number < 0 ? "-inf" : "inf";
  }
  std::array<char, 40> digits{};
  const double magnitude = std::fabs(number);
  const bool plain = number == 0.0 || (magnitude >= 1e-4 && magnitude < 1e16);
  const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, format).ptr;
  std::string out(digits.data(), end);
  return plain && out.find('.') == std::string::npos ? out + ".0" : out;
}

Result<MarkedText> to_text(TemplateRuntime& runtime, const Value& value) {
  if (const auto* text = value.get<MarkedText>()) {
    return *text;
  }
  if (value.is<Undefined>()) {
    return MarkedText{};
  }
  if (value.is<NoneValue>()) {
    return MarkedText{.bytes = "None"};
  }
  if (const bool* flag = value.get<bool>()) {
    return MarkedText{.bytes = *flag ? "True" : "False"};
  }
  if (const auto* number = value.get<std::int64_t>()) {
    return runtime.text(std::to_string(*number));
  }
  if (const auto* number = value.get<double>()) {
    return runtime.text(float_text(*number));
  }
  return runtime.error("a " + std::string(type_name(value)) +
                           " used as text is not supported; expected a string or a number",
                       ErrorCode::kUnsupported);
}

Result<MarkedText> joined(TemplateRuntime& runtime, const MarkedText& left,
                          const MarkedText& right) {
  const bool markup = left.markup || right.markup;
  for (const MarkedText* side : {&left, &right}) {
    if (markup && !side->markup && side->bytes.find_first_of("&<>'\"") != std::string_view::npos) {
      return runtime.error(
          "text from 'safe' joined with text that it would escape is not supported",
          ErrorCode::kUnsupported);
    }
  }
  TextBuilder builder;
  TIDEKV_TRY(runtime.append(builder, left));
  TIDEKV_TRY(runtime.append(builder, right));
  MarkedText made = runtime.text(builder);
  made.markup = markup;
  return made;
}

Error undefined_error(const TemplateRuntime& runtime, const Undefined& undefined) {
  const std::string name = in_quotes(undefined.name);
  return runtime.error(undefined.owner.empty()
                           ? name + " is undefined"
                           : name + " is undefined: " + std::string(undefined.owner) +
                                 " has no such element");
}

Status check_defined(const TemplateRuntime& runtime, const Value& value) {
  if (const auto* undefined = value.get<Undefined>()) {
    return undefined_error(runtime, *undefined);
  }
  return Ok{};
}

}  // namespace tidekv
