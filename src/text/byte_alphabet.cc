#include "text/byte_alphabet.h"

#include <array>

namespace tidekv {
namespace {

constexpr int kNumCodes = 0x144;  // U+0100 + 68 displaced bytes

struct Alphabet {
  std::array<std::array<char, 2>, 256> text{};
  std::array<std::uint8_t, 256> length{};
  std::array<std::int16_t, kNumCodes> byte_of_code{};
};

constexpr bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

consteval Alphabet make_alphabet() {
  Alphabet alphabet;
  for (std::int16_t& byte : alphabet.byte_of_code) {
    byte = -1;
  }
  int next_displaced = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const int code = stands_for_itself(byte) ? byte : next_displaced++;
    const auto at = static_cast<std::size_t>(byte);
    alphabet.byte_of_code[static_cast<std::size_t>(code)] = static_cast<std::int16_t>(byte);
    if (code < 0x80) {
      alphabet.text[at] = {static_cast<char>(code), '\0'};
      alphabet.length[at] = 1;
    } else {
      alphabet.text[at] = {static_cast<char>(0xC0 | (code >> 6)),
                           static_cast<char>(0x80 | (code & 0x3F))};
      alphabet.length[at] = 2;
    }
  }
  return alphabet;
}

constexpr Alphabet kAlphabet = make_alphabet();

}  // namespace

std::string_view byte_spelling(std::uint8_t byte) {
  return {kAlphabet.text[byte].data(), kAlphabet.length[byte]};
}

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  std::string bytes;
  for (std::size_t i = 0; i < spelling.size(); ++i) {
    unsigned code = static_cast<std::uint8_t>(spelling[i]);
    if (code >= 0x80) {
      const bool two_bytes = (code & 0xE0U) == 0xC0U && i + 1 < spelling.size();
      if (!two_bytes) {
        return std::nullopt;
      }
      code = ((code & 0x1FU) << 6U) | (static_cast<std::uint8_t>(spelling[++i]) & 0x3FU);
    }
    if (code >= kNumCodes || kAlphabet.byte_of_code[code] < 0) {
      return std::nullopt;
    }
    bytes += static_cast<char>(kAlphabet.byte_of_code[code]);
  }
  return bytes;
}

}  // namespace tidekv
