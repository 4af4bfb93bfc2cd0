// Numbers and tables for people.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tidekv::cli {

// 1234567 as "1,234,567".
std::string grouped(std::int64_t value);

// The nearest unit of 1024s with two decimals: "14.96 GiB"; "512 B" below a KiB.
std::string in_units(std::int64_t bytes);

// "1,048,576 bytes (1.00 MiB)".
std::string bytes_and_units(std::int64_t bytes);

// "4.21 s", "0.0123 s": enough digits to tell runs apart.
std::string seconds_text(double seconds);

// A rate with grouped digits: "5,104 tokens/s"; "-" for none or in no time.
std::string rate_text(double count, double seconds);

// One line of visible text: control bytes, a backslash and bytes that are not valid UTF-8 become
// escapes such as \n or \xFF. Nothing sent to a terminal can move its cursor or change its colours.
std::string printable(std::string_view text);

// The same of an error's message, whose backslashes are escapes already.
std::string printable_message(std::string_view text);

// Rows of cells in columns: the first column to the left, the others to the right. An empty row
// is a blank line.
std::string table(const std::vector<std::vector<std::string>>& rows);

// The same as a table of Markdown, whose first row is its head.
std::string markdown_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace tidekv::cli
