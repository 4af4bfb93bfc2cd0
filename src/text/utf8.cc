#include "text/utf8.h"

#include <array>

namespace tidekv {
namespace {

constexpr std::size_t kMaxQuotedBytes = 60;

std::uint8_t byte_at(std::string_view text, std::size_t i) {
  return static_cast<std::uint8_t>(text[i]);
}

// The bytes that may follow a lead byte: how many, and the range of the first of them.
struct LeadByte {
  std::uint8_t num_following = 0;
  std::uint8_t first_low = 0x80;
  std::uint8_t first_high = 0xBF;
};

// Nothing for a byte that starts no multi-byte character. The narrowed ranges exclude overlong
// forms (E0, F0), surrogates (ED) and what lies beyond U+10FFFF (F4).
LeadByte lead_byte(std::uint8_t lead) {
  if (lead >= 0xC2 && lead <= 0xDF) {
    return {.num_following = 1};
  }
  if (lead >= 0xE0 && lead <= 0xEF) {
    return {.num_following = 2,
            .first_low = static_cast<std::uint8_t>(lead == 0xE0 ? 0xA0 : 0x80),
            .first_high = static_cast<std::uint8_t>(lead == 0xED ? 0x9F : 0xBF)};
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    return {.num_following = 3,
            .first_low = static_cast<std::uint8_t>(lead == 0xF0 ? 0x90 : 0x80),
            .first_high = static_cast<std::uint8_t>(lead == 0xF4 ? 0x8F : 0xBF)};
  }
  return {};
}

constexpr std::array<std::string_view, 25> kWhiteSpace = {
    "\t",           "\n",           "\v",           "\f",           "\r",           " ",
    "\xC2\x85",     "\xC2\xA0",     "\xE1\x9A\x80", "\xE2\x80\x80", "\xE2\x80\x81", "\xE2\x80\x82",
    "\xE2\x80\x83", "\xE2\x80\x84", "\xE2\x80\x85", "\xE2\x80\x86", "\xE2\x80\x87", "\xE2\x80\x88",
    "\xE2\x80\x89", "\xE2\x80\x8A", "\xE2\x80\xA8", "\xE2\x80\xA9", "\xE2\x80\xAF", "\xE2\x81\x9F",
    "\xE3\x80\x80"};

}  // namespace

Utf8Step utf8_step(std::string_view text) {
  const std::uint8_t lead = byte_at(text, 0);
  if (lead < 0x80) {
    return {Utf8Kind::kValid, 1};
  }
  const LeadByte rule = lead_byte(lead);
  if (rule.num_following == 0) {
    return {Utf8Kind::kInvalid, 1};
  }
  for (std::uint8_t i = 1; i <= rule.num_following; ++i) {
    if (i >= text.size()) {
      return {Utf8Kind::kIncomplete, i};
    }
    const std::uint8_t low = i == 1 ? rule.first_low : 0x80;
    const std::uint8_t high = i == 1 ? rule.first_high : 0xBF;
    if (byte_at(text, i) < low || byte_at(text, i) > high) {
      return {Utf8Kind::kInvalid, i};
    }
  }
  return {Utf8Kind::kValid, static_cast<std::uint8_t>(rule.num_following + 1)};
}

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const Utf8Step step = utf8_step(text.substr(done));
    if (step.kind != Utf8Kind::kValid) {
      break;
    }
    done += step.length;
  }
  return done;
}

std::size_t leading_white_space(std::string_view text) {
  std::size_t done = 0;
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view space : kWhiteSpace) {
      if (text.substr(done).starts_with(space)) {
        done += space.size();
        found = true;
        break;
      }
    }
  }
  return done;
}

std::size_t trailing_white_space(std::string_view text) {
  std::size_t done = 0;
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view space : kWhiteSpace) {
      if (text.substr(0, text.size() - done).ends_with(space)) {
        done += space.size();
        found = true;
        break;
      }
    }
  }
  return done;
}

std::string quoted_text(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out = "\"";
  std::size_t done = 0;
  while (done < text.size() && done < kMaxQuotedBytes) {
    const Utf8Step step = utf8_step(text.substr(done));
    const std::uint8_t first = byte_at(text, done);
    if (step.kind == Utf8Kind::kValid && first >= 0x20 && first != 0x7F) {
      out += text.substr(done, step.length);
      done += step.length;
      continue;
    }
    out += "\\x";
    out += kDigits[first >> 4U];
    out += kDigits[first & 0xFU];
    ++done;
  }
  return out + (done < text.size() ? "...\"" : "\"");
}

}  // namespace tidekv
