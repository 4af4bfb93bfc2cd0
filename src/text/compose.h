// Unicode's normal form NFC.
#pragma once

#include <string>
#include <string_view>

namespace tidekv {

// True for text whose characters all lie below U+0300: it is in NFC.
bool is_surely_composed(std::string_view text);

// `text` in NFC; bytes that are not valid UTF-8 stay, and nothing composes across them.
std::string compose(std::string_view text);

}  // namespace tidekv
