#include "text/compose.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "text/utf8.h"

namespace tidekv {
namespace {

constexpr unsigned char kFirstLeadOfU0300 = 0xCC;
constexpr auto kOptions = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

// Marks that follow one another are ordered by class, those of one class left as they are.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
  const auto mark_class = [](utf8proc_int32_t code) {
    return utf8proc_get_property(code)->combining_class;
  };
  const auto is_mark = [&](utf8proc_int32_t code) { return mark_class(code) != 0; };
  auto at = codes.begin();
  while (at != codes.end()) {
    const auto begin = std::find_if(at, codes.end(), is_mark);
    const auto end = std::find_if_not(begin, codes.end(), is_mark);
    std::stable_sort(begin, end, [&](utf8proc_int32_t a, utf8proc_int32_t b) {
      return mark_class(a) < mark_class(b);
    });
    at = end;
  }
}

// utf8proc's own utf8proc_map orders marks in quadratic time, so the steps are taken one by one.
void append_composed(std::string_view text, std::string& out) {
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  std::array<utf8proc_int32_t, 32> parts{};
  while (!text.empty()) {
    utf8proc_int32_t code = 0;
    const auto len = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                      static_cast<utf8proc_ssize_t>(text.size()), &code);
    if (len <= 0) {
      break;  // not reached: the text is valid
    }
    text.remove_prefix(static_cast<std::size_t>(len));
    const auto num_parts = utf8proc_decompose_char(
        code, parts.data(), static_cast<utf8proc_ssize_t>(parts.size()), kOptions, nullptr);
    codes.insert(codes.end(), parts.begin(),
                 parts.begin() + std::clamp<utf8proc_ssize_t>(num_parts, 0, parts.size()));
  }
  order_marks(codes);
  const auto num_codes =
      utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), kOptions);
  std::array<utf8proc_uint8_t, 4> bytes{};
  for (utf8proc_ssize_t i = 0; i < num_codes; ++i) {
    const auto len = utf8proc_encode_char(codes[static_cast<std::size_t>(i)], bytes.data());
    out.append(bytes.begin(), bytes.begin() + len);
  }
}

}  // namespace

bool is_surely_composed(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char byte) {
    return static_cast<unsigned char>(byte) < kFirstLeadOfU0300;
  });
}

std::string compose(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    append_composed(text.substr(0, valid), out);
    text.remove_prefix(valid);
    if (!text.empty()) {
      const std::size_t invalid = utf8_step(text).length;
      out += text.substr(0, invalid);
      text.remove_prefix(invalid);
    }
  }
  return out;
}

}  // namespace tidekv
