#include "chat/template_case.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "chat/template_case_tables.h"

namespace tidekv {
namespace {

constexpr std::int32_t kCapitalSigma = 0x3A3;
constexpr std::int32_t kSigma = 0x3C3;
constexpr std::int32_t kFinalSigma = 0x3C2;

enum class Case : std::uint8_t {
  kUpper,
  kTitle,  // upper, as the first letter of a word
  kLower,
};

bool is_ascii_letter(std::int32_t code) {
  return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
}

// `code` itself if it has no other case.
std::int32_t mapped(std::span<const CaseRange> ranges, std::int32_t code) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), code,
                       [](std::int32_t at, const CaseRange& range) { return at < range.first; });
  if (after == ranges.begin()) {
    return code;
  }
  const CaseRange& range = *(after - 1);
  const bool inside = code <= range.last && (code - range.first) % range.stride == 0;
  return inside ? code + range.delta : code;
}

bool is_within(std::span<const CodeRange> ranges, std::int32_t code) {
  return std::any_of(ranges.begin(), ranges.end(), [code](const CodeRange& range) {
    return code >= range.first && code <= range.last;
  });
}

// Whether `code` has upper and lower case. Some have only one, so for other characters than those
// that are mapped this is not known here.
bool is_mapped_letter(std::int32_t code) {
  return is_ascii_letter(code) || code == kCapitalSigma ||
         mapped(upper_case_ranges(), code) != code || mapped(lower_case_ranges(), code) != code;
}

Error not_supported(const TemplateRuntime& runtime, std::int32_t code) {
  return runtime.error(
      "upper and lower case of '" + printable(utf8_of(code)) + "' here are not supported",
      ErrorCode::kUnsupported);
}

// Unicode skips these when it looks for a letter beside a sigma.
bool is_skipped(std::int32_t code) {
  return code == '\'' || code == '.' || code == ':' || code == '^' || code == '`';
}

// Whether a letter follows, or ends, `text`.
Result<bool> letter_beside(const TemplateRuntime& runtime, std::string_view text, bool at_start) {
  while (!text.empty()) {
    std::size_t begin = 0;
    if (!at_start) {
      begin = text.size() - 1;
      while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0U) == 0x80) {
        --begin;
      }
    }
    const Character c = first_character(text.substr(begin));
    if (!is_skipped(c.code)) {
      if (c.code >= 0x80 && !is_mapped_letter(c.code)) {
        return not_supported(runtime, kCapitalSigma);
      }
      return is_mapped_letter(c.code);
    }
    text = at_start ? text.substr(c.length) : text.substr(0, begin);
  }
  return false;
}

Result<std::int32_t> lower_sigma(const TemplateRuntime& runtime, std::string_view text,
                                 std::size_t at) {
  TIDEKV_ASSIGN(const bool before, letter_beside(runtime, text.substr(0, at), false));
  TIDEKV_ASSIGN(const bool after, letter_beside(runtime, text.substr(at + 2), true));
  return before && !after ? kFinalSigma : kSigma;
}

// The character at byte `at` of `text` in that case.
Result<std::int32_t> other_case(const TemplateRuntime& runtime, std::string_view text,
                                std::size_t at, Case wanted) {
  const std::int32_t code = first_character(text.substr(at)).code;
  if (code < 0x80) {
    if (!is_ascii_letter(code)) {
      return code;
    }
    return wanted == Case::kLower ? code | 0x20 : code & ~0x20;
  }
  if (wanted == Case::kLower) {
    if (code == 0x130) {  // I with a dot, whose lower case is two characters
      return not_supported(runtime, code);
    }
    return code == kCapitalSigma ? lower_sigma(runtime, text, at)
                                 : Result<std::int32_t>(mapped(lower_case_ranges(), code));
  }
  if (is_within(wanted == Case::kUpper ? no_simple_upper() : no_simple_title(), code)) {
    return not_supported(runtime, code);
  }
  return mapped(upper_case_ranges(), code);
}

template <typename Choose>
Result<MarkedText> cased(TemplateRuntime& runtime, const MarkedText& text, Choose choose) {
  TIDEKV_TRY(runtime.check_text_size(2 * text.bytes.size()));
  TextBuilder builder;
  for (std::size_t at = 0; at < text.bytes.size();) {
    TIDEKV_TRY(runtime.step());
    const Character c = first_character(text.bytes.substr(at));
    TIDEKV_ASSIGN(const std::int32_t code, other_case(runtime, text.bytes, at, choose(c)));
    if (code == c.code) {
      builder.append(text, at, at + c.length);
    } else {
      builder.append(utf8_of(code), is_marked(text, at));
    }
    at += c.length;
  }
  MarkedText made = runtime.text(builder);
  made.markup = text.markup;
  return made;
}

}  // namespace

Result<MarkedText> upper_case(TemplateRuntime& runtime, const MarkedText& text) {
  return cased(runtime, text, [](Character) { return Case::kUpper; });
}

Result<MarkedText> lower_case(TemplateRuntime& runtime, const MarkedText& text) {
  return cased(runtime, text, [](Character) { return Case::kLower; });
}

Result<MarkedText> capitalized(TemplateRuntime& runtime, const MarkedText& text) {
  bool first = true;
  return cased(runtime, text, [&first](Character) {
    const Case chosen = first ? Case::kTitle : Case::kLower;
    first = false;
    return chosen;
  });
}

Result<MarkedText> title_case(TemplateRuntime& runtime, const MarkedText& text) {
  for (std::size_t at = 0; at < text.bytes.size();) {
    const Character c = first_character(text.bytes.substr(at));
    TIDEKV_TRY(runtime.step());
    if (c.code >= 0x80 && !is_mapped_letter(c.code)) {
      return not_supported(runtime, c.code);
    }
    at += c.length;
  }
  bool in_word = false;
  return cased(runtime, text, [&in_word](Character c) {
    const Case chosen = in_word ? Case::kLower : Case::kTitle;
    in_word = is_mapped_letter(c.code);
    return chosen;
  });
}

Result<MarkedText> title_words(TemplateRuntime& runtime, const MarkedText& text) {
  static constexpr std::string_view kBefore = "-({[<";
  bool in_word = false;
  return cased(runtime, text, [&in_word](Character c) {
    const Case chosen = in_word ? Case::kLower : Case::kUpper;
    const bool ascii = c.code >= 0 && c.code < 0x80;
    in_word = !is_python_space(c.code) &&
              !(ascii && kBefore.find(static_cast<char>(c.code)) != std::string_view::npos);
    return chosen;
  });
}

}  // namespace tidekv
