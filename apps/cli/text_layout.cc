#include "text_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tidekv::cli {
namespace {

using Byte = unsigned char;

// Bytes of a UTF-8 character that starts with `first`; 0 if none does.
std::size_t length_from_first(Byte first) {
  if (first < 0x80) {
    return 1;
  }
  if (first < 0xC2 || first > 0xF4) {
    return 0;
  }
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

// Whether the second byte makes the character overlong, a surrogate, a value past U+10FFFF or,
// for our purpose, a C1 control.
bool second_byte_refused(Byte first, Byte second) {
  switch (first) {
    case 0xC2:
    case 0xE0:
      return second < 0xA0;
    case 0xED:
      return second > 0x9F;
    case 0xF0:
      return second < 0x90;
    case 0xF4:
      return second > 0x8F;
    default:
      return false;
  }
}

// Bytes of the valid UTF-8 character at the start of `text`; 0 if there is none.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<Byte>(text[i]); };
  const std::size_t length = length_from_first(byte(0));
  if (length > text.size() || (length > 1 && second_byte_refused(byte(0), byte(1)))) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) {
      return 0;
    }
  }
  return length;
}

std::string escaped_byte(char c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    case '\\':
      return "\\\\";
    default:
      return fmt::format("\\x{:02X}", static_cast<Byte>(c));
  }
}

std::string escaped(std::string_view text, bool (*stays)(char)) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length > 1 || (length == 1 && stays(text[0]))) {
      out += text.substr(0, length);
      text.remove_prefix(length);
    } else {
      out += escaped_byte(text[0]);
      text.remove_prefix(1);
    }
  }
  return out;
}

bool is_visible(char c) { return c >= 0x20 && c < 0x7F; }

// Columns are counted in bytes: every cell is ours and ASCII, but for model paths in titles.
std::string padded(const std::string& cell, std::size_t width, bool to_the_left) {
  const std::string space(width - std::min(width, cell.size()), ' ');
  return to_the_left ? cell + space : space + cell;
}

}  // namespace

std::string grouped(std::int64_t value) {
  std::string digits = std::to_string(value);
  const std::size_t first = value < 0 ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::string in_units(std::int64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (std::abs(value) >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.2f} {}", value, kUnits[unit]);
}

std::string bytes_and_units(std::int64_t bytes) {
  return fmt::format("{} bytes ({})", grouped(bytes), in_units(bytes));
}

std::string seconds_text(double seconds) {
  const int decimals = seconds >= 100 ? 1 : seconds >= 1 ? 2 : 4;
  return fmt::format("{:.{}f} s", seconds, decimals);
}

std::string rate_text(double count, double seconds) {
  if (!(seconds > 0) || !(count > 0)) {
    return "-";
  }
  const double rate = count / seconds;
  return rate >= 100 ? grouped(std::llround(rate)) + " tokens/s"
                     : fmt::format("{:.1f} tokens/s", rate);
}

std::string printable(std::string_view text) {
  return escaped(text, [](char c) { return is_visible(c) && c != '\\'; });
}

std::string printable_message(std::string_view text) { return escaped(text, is_visible); }

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += (i == 0 ? "" : "  ") + padded(row[i], widths[i], i == 0);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string markdown_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      text += i == 0 ? fmt::format("| {:<{}} ", rows[r][i], widths[i])
                     : fmt::format("| {:>{}} ", rows[r][i], widths[i]);
    }
    text += "|\n";
    for (std::size_t i = 0; r == 0 && i < widths.size(); ++i) {
      text += fmt::format("| {}{} ", std::string(widths[i] - 1, '-'), i == 0 ? "-" : ":");
    }
    text += r == 0 ? "|\n" : "";
  }
  return text;
}

}  // namespace tidekv::cli
