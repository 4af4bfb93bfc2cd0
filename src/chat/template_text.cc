#include "chat/template_text.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "text/utf8.h"

namespace tidekv {
namespace {

std::uint32_t byte_at(std::string_view text, std::size_t i) {
  return static_cast<std::uint8_t>(text[i]);
}

}  // namespace

void TextBuilder::mark(std::size_t begin, std::size_t end) {
  if (begin == end) {
    return;
  }
  if (!marks_.empty() && marks_.back().end == begin) {
    marks_.back().end = end;
  } else {
    marks_.push_back({begin, end});
  }
}

void TextBuilder::append(std::string_view bytes, bool marked) {
  const std::size_t begin = bytes_.size();
  bytes_ += bytes;
  if (marked) {
    mark(begin, bytes_.size());
  }
}

void TextBuilder::append(const MarkedText& text, std::size_t begin, std::size_t end) {
  const std::size_t offset = bytes_.size();
  bytes_ += text.bytes.substr(begin, end - begin);
  auto range = std::upper_bound(text.marks.begin(), text.marks.end(), begin,
                                [](std::size_t at, const TextRange& r) { return at < r.end; });
  for (; range != text.marks.end() && range->begin < end; ++range) {
    mark(offset + std::max(range->begin, begin) - begin,
         offset + std::min(range->end, end) - begin);
  }
}

void TextBuilder::take(std::string& bytes, std::vector<TextRange>& marks) {
  bytes = std::exchange(bytes_, {});
  marks = std::exchange(marks_, {});
}

bool is_marked(const MarkedText& text, std::size_t i) {
  const auto range =
      std::upper_bound(text.marks.begin(), text.marks.end(), i,
                       [](std::size_t at, const TextRange& r) { return at < r.end; });
  return range != text.marks.end() && range->begin <= i;
}

Character first_character(std::string_view text) {
  const Utf8Step step = utf8_step(text);
  if (step.kind != Utf8Kind::kValid) {
    return {};
  }
  std::uint32_t code = byte_at(text, 0);
  if (step.length > 1) {
    code &= 0x7FU >> step.length;
    for (std::size_t i = 1; i < step.length; ++i) {
      code = code << 6U | (byte_at(text, i) & 0x3FU);
    }
  }
  return {static_cast<std::int32_t>(code), step.length};
}

std::size_t num_characters(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    at += first_character(text.substr(at)).length;
  }
  return count;
}

std::size_t bytes_of_characters(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  for (; count > 0 && at < text.size(); --count) {
    at += first_character(text.substr(at)).length;
  }
  return at;
}

std::string utf8_of(std::int32_t code) {
  const auto c = static_cast<std::uint32_t>(code);
  std::string out;
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0U | c >> 6U);
  } else if (c < 0x10000) {
    put(0xE0U | c >> 12U);
    put(0x80U | (c >> 6U & 0x3FU));
  } else {
    put(0xF0U | c >> 18U);
    put(0x80U | (c >> 12U & 0x3FU));
    put(0x80U | (c >> 6U & 0x3FU));
  }
  if (c >= 0x80) {
    put(0x80U | (c & 0x3FU));
  }
  return out;
}

bool is_python_space(std::int32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 ||
         code == 0xA0 || code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

std::size_t python_space_at_start(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const Character c = first_character(text.substr(at));
    if (!is_python_space(c.code)) {
      break;
    }
    at += c.length;
  }
  return at;
}

std::size_t python_space_at_end(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t begin = end - 1;  // back to the character's first byte; white space has at most 3
    while (begin > 0 && end - begin < 3 && (byte_at(text, begin) & 0xC0U) == 0x80) {
      --begin;
    }
    const Character c = first_character(text.substr(begin, end - begin));
    if (c.length != end - begin || !is_python_space(c.code)) {
      break;
    }
    end = begin;
  }
  return text.size() - end;
}

std::size_t find_text(std::string_view text, std::string_view part, std::size_t from) {
  constexpr std::size_t kShort = 16;  // bytes; below, the plain search is linear enough
  if (part.size() <= kShort) {
    return text.find(part, from);
  }
  if (from > text.size()) {
    return std::string_view::npos;
  }
  const auto begin = text.begin() + static_cast<std::ptrdiff_t>(from);
  const auto found =
      std::search(begin, text.end(), std::boyer_moore_searcher(part.begin(), part.end()));
  return found == text.end() ? std::string_view::npos
                             : static_cast<std::size_t>(found - text.begin());
}

std::string printable(std::string_view text) {
  constexpr std::size_t kMaxBytes = 400;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  std::size_t at = 0;
  while (at < text.size() && at < kMaxBytes) {
    const Character c = first_character(text.substr(at));
    if (c.code >= 0x20 && c.code != 0x7F && !(c.code >= 0x80 && c.code < 0xA0)) {
      out += text.substr(at, c.length);
      at += c.length;
      continue;
    }
    out += "\\x";
    out += kDigits[byte_at(text, at) >> 4U];
    out += kDigits[byte_at(text, at) & 0xFU];
    ++at;
  }
  return out + (at < text.size() ? "..." : "");
}

}  // namespace tidekv
