// The alphabet in which byte-level vocabularies are spelled: one printable character per byte.
//
// Printable Latin-1 characters stand for themselves; the other 68 bytes (controls, space,
// 0x7F..0xA0, 0xAD) are U+0100, U+0101, ... in ascending order. So a space is U+0120.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tidekv {

// The character that spells `byte`, as UTF-8 (one or two bytes).
std::string_view byte_spelling(std::uint8_t byte);

// The bytes a vocabulary entry stands for; nothing if it contains a character outside the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

}  // namespace tidekv
