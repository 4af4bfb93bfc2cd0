#include "bench_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "text_layout.h"

namespace tidekv::cli {
namespace {

constexpr std::size_t kMaxNumbers = 1000;

Error refuse(std::string_view text, const std::string& right) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("'{}' {}", printable(text.substr(0, 60)), right)};
}

struct NumberRange {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t step = 1;
  bool multiplies = false;
};

Result<NumberRange> parse_range(std::string_view text, std::size_t dash, IntegerRange range) {
  const std::size_t sign = text.find_first_of("+*", dash);
  const std::string_view last = text.substr(
      dash + 1, sign == std::string_view::npos ? std::string_view::npos : sign - dash - 1);
  NumberRange parsed;
  TIDEKV_ASSIGN(parsed.first, parse_tokens(text.substr(0, dash), range));
  TIDEKV_ASSIGN(parsed.last, parse_tokens(last, range));
  if (parsed.last < parsed.first) {
    return refuse(text, "ends before it begins; expected FIRST-LAST, the smaller first");
  }
  if (sign != std::string_view::npos) {
    parsed.multiplies = text[sign] == '*';
    const std::int64_t least = parsed.multiplies ? 2 : 1;
    TIDEKV_ASSIGN(parsed.step, parse_tokens(text.substr(sign + 1), {least, INT32_MAX}));
    if (parsed.multiplies && parsed.first == 0) {
      return refuse(text, "multiplies from 0, which stays 0; expected a first number from 1");
    }
  }
  return parsed;
}

// `last` is at most INT32_MAX as `step` is, so nothing overflows.
Status append_range(const NumberRange& range, std::vector<std::int64_t>& numbers) {
  for (std::int64_t value = range.first; value <= range.last;
       value = range.multiplies ? value * range.step : value + range.step) {
    if (numbers.size() == kMaxNumbers) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("a list of more than {} numbers; give a larger step",
                               grouped(static_cast<std::int64_t>(kMaxNumbers)))};
    }
    numbers.push_back(value);
  }
  return Ok{};
}

}  // namespace

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<std::vector<std::int64_t>> parse_number_list(std::string_view text, IntegerRange range) {
  const IntegerRange bounded{std::max<std::int64_t>(range.least, 0),
                             std::min<std::int64_t>(range.most, INT32_MAX)};
  std::vector<std::int64_t> numbers;
  for (const std::string_view part : split_at_commas(text)) {
    NumberRange parsed;
    if (const std::size_t dash = part.find('-', 1); dash != std::string_view::npos) {
      TIDEKV_ASSIGN(parsed, parse_range(part, dash, bounded));
    } else {
      TIDEKV_ASSIGN(parsed.first, parse_tokens(part, bounded));
      parsed.last = parsed.first;
    }
    TIDEKV_TRY(append_range(parsed, numbers));
  }
  return numbers;
}

Result<std::pair<std::int64_t, std::int64_t>> parse_number_pair(std::string_view text,
                                                                IntegerRange range) {
  const std::vector<std::string_view> parts = split_at_commas(text);
  if (parts.size() != 2) {
    return refuse(text, "is not two numbers, PROMPT,GENERATED, like 512,128");
  }
  TIDEKV_ASSIGN(const std::int64_t first, parse_tokens(parts[0], range));
  TIDEKV_ASSIGN(const std::int64_t second, parse_tokens(parts[1], range));
  return std::pair(first, second);
}

}  // namespace tidekv::cli
