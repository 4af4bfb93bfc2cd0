#include "text/space_mark.h"

namespace tidekv {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

}  // namespace

std::string without_space_marks(std::string_view token) {
  std::string text;
  while (!token.empty()) {
    if (token.starts_with(kSpaceMark)) {
      text += ' ';
      token.remove_prefix(kSpaceMark.size());
    } else {
      text += token.front();
      token.remove_prefix(1);
    }
  }
  return text;
}

int byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') {
    return -1;
  }
  const std::size_t high = kDigits.find(token[3]);
  const std::size_t low = kDigits.find(token[4]);
  const bool is_byte = high != std::string_view::npos && low != std::string_view::npos;
  return is_byte ? static_cast<int>(16 * high + low) : -1;
}

std::string token_of_byte(std::uint8_t byte) {
  return std::string("<0x") + kDigits[byte >> 4U] + kDigits[byte & 0xFU] + ">";
}

}  // namespace tidekv
