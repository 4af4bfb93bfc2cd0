#include "values.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "base/checked_math.h"
#include "text_layout.h"

namespace tidekv::cli {
namespace {

template <typename Number>
std::optional<Number> whole_number(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc{} || stop != end) {
    return std::nullopt;
  }
  return value;
}

std::string describe(IntegerRange range) {
  if (range.least != INT64_MIN && range.most != INT64_MAX) {
    return fmt::format("a whole number from {} to {}", grouped(range.least), grouped(range.most));
  }
  if (range.least != INT64_MIN) {
    return fmt::format("a whole number of at least {}", grouped(range.least));
  }
  return "a whole number";
}

Error not_right(std::string_view text, const std::string& right) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("'{}' is not {}", printable(text.substr(0, 60)), right)};
}

Result<std::int64_t> parse_scaled(std::string_view text, std::int64_t scale, IntegerRange range,
                                  std::string_view shown) {
  const std::optional<std::int64_t> value = whole_number<std::int64_t>(text);
  std::int64_t scaled = 0;
  if (!value || __builtin_mul_overflow(*value, scale, &scaled) || scaled < range.least ||
      scaled > range.most) {
    return not_right(shown, describe(range));
  }
  return scaled;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Bytes of one unit, or nothing for an unknown unit.
std::optional<std::int64_t> unit_bytes(std::string_view unit) {
  if (unit.empty() || unit == "B" || unit == "b") {
    return 1;
  }
  constexpr std::string_view kPrefixes = "kmgt";
  const std::size_t power = kPrefixes.find(lower(unit[0]));
  if (power == std::string_view::npos) {
    return std::nullopt;
  }
  std::string rest;
  for (const char c : unit.substr(1)) {
    rest += lower(c);
  }
  if (!rest.empty() && rest != "b" && rest != "ib") {
    return std::nullopt;
  }
  const std::int64_t step = rest == "b" ? 1000 : 1024;
  std::int64_t bytes = step;
  for (std::size_t i = 0; i < power; ++i) {
    bytes *= step;
  }
  return bytes;
}

std::optional<int> hex_digit(char c) {
  const char digit = lower(c);
  if (digit >= '0' && digit <= '9') {
    return digit - '0';
  }
  if (digit >= 'a' && digit <= 'f') {
    return digit - 'a' + 10;
  }
  return std::nullopt;
}

std::optional<char> simple_escape(char c) {
  constexpr std::string_view kNames = "ntr0\\\"'";
  constexpr std::string_view kBytes("\n\t\r\0\\\"'", 7);
  const std::size_t at = kNames.find(c);
  return at == std::string_view::npos ? std::nullopt : std::optional<char>(kBytes[at]);
}

}  // namespace

Result<std::int64_t> parse_integer(std::string_view text, IntegerRange range) {
  return parse_scaled(text, 1, range, text);
}

Result<std::int64_t> parse_tokens(std::string_view text, IntegerRange range) {
  std::string_view digits = text;
  std::int64_t scale = 1;
  if (!text.empty() && (lower(text.back()) == 'k' || lower(text.back()) == 'm')) {
    scale = lower(text.back()) == 'k' ? 1024 : 1024 * 1024;
    digits.remove_suffix(1);
  }
  return parse_scaled(digits, scale, range, text);
}

Result<double> parse_real(std::string_view text, RealRange range) {
  const std::optional<double> value = whole_number<double>(text);
  if (!value || !std::isfinite(*value) || *value < range.least || *value > range.most) {
    return not_right(text, fmt::format("a number from {} to {}", range.least, range.most));
  }
  return *value;
}

Result<std::int64_t> parse_bytes(std::string_view text) {
  const std::string right = "a size of more than 0 bytes, like 8G, 512M, 1.5GiB or 1048576";
  const std::size_t digits = text.find_first_not_of("0123456789.");
  const std::string_view number = text.substr(0, digits);
  const std::string_view unit = digits == std::string_view::npos ? "" : text.substr(digits);
  const std::optional<std::int64_t> scale = unit_bytes(unit);
  if (!scale) {
    return not_right(text, right);
  }
  // Whole numbers stay exact; only a fraction goes through floating point.
  if (const auto whole = whole_number<std::int64_t>(number)) {
    const std::optional<std::int64_t> bytes = checked_mul(*whole, *scale);
    return bytes && *bytes > 0 ? Result<std::int64_t>(*bytes) : not_right(text, right);
  }
  const std::optional<double> real = whole_number<double>(number);
  const double bytes = real ? std::floor(*real * static_cast<double>(*scale)) : 0;
  if (!(bytes >= 1) || bytes >= 9.2e18) {
    return not_right(text, right);
  }
  return static_cast<std::int64_t>(bytes);
}

Result<std::string> parse_escapes(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    const char name = i + 1 < text.size() ? text[i + 1] : ' ';
    if (const auto byte = simple_escape(name)) {
      out += *byte;
      i += 1;
      continue;
    }
    const auto high = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
    const auto low = i + 3 < text.size() ? hex_digit(text[i + 3]) : std::nullopt;
    if (name != 'x' || !high || !low) {
      return not_right(text.substr(i, 4), R"(an escape; these are: \n \t \r \0 \\ \" \' \xHH)");
    }
    out += static_cast<char>(*high * 16 + *low);
    i += 3;
  }
  return out;
}

}  // namespace tidekv::cli
