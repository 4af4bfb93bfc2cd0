// How SentencePiece spells tokens: U+2581 stands for a space, "<0x0A>" for a byte.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tidekv {

inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

// `token` with a space for every mark.
std::string without_space_marks(std::string_view token);

// The byte that a token of the form "<0x0A>" stands for; -1 for any other.
int byte_of_token(std::string_view token);

// "<0x0A>" for 10.
std::string token_of_byte(std::uint8_t byte);

}  // namespace tidekv
