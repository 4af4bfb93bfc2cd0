#include "text/template_case.h"

#include <string_view>

namespace tidekv {
namespace {

enum class Case : std::uint8_t { kUpper, kLower };

bool is_letter(std::int32_t code) {
  return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z');
}

// Appends bytes [at, at + length) of `text`, one character, in upper or lower case.
Status append_cased(TemplateRuntime& runtime, TextBuilder& builder, const MarkedText& text,
                    std::size_t at, Case wanted) {
  const Character c = first_character(text.bytes.substr(at));
  if (!is_letter(c.code)) {
    return runtime.append(builder, text, at, at + c.length);
  }
  const std::int32_t cased = wanted == Case::kUpper ? (c.code & ~0x20) : (c.code | 0x20);
  TIDEKV_TRY(runtime.check_text_size(builder.size() + 1));
  builder.append(utf8_of(cased), is_marked(text, at));
  return Ok{};
}

template <typename Choose>
Result<MarkedText> cased(TemplateRuntime& runtime, const MarkedText& text, Choose choose) {
  TextBuilder builder;
  for (std::size_t at = 0; at < text.bytes.size();) {
    const Character c = first_character(text.bytes.substr(at));
    TIDEKV_TRY(append_cased(runtime, builder, text, at, choose(c)));
    at += c.length;
  }
  TIDEKV_TRY(runtime.step(text.bytes.size()));
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
    const Case chosen = first ? Case::kUpper : Case::kLower;
    first = false;
    return chosen;
  });
}

Result<MarkedText> title_case(TemplateRuntime& runtime, const MarkedText& text) {
  bool in_word = false;
  return cased(runtime, text, [&in_word](Character c) {
    const Case chosen = in_word ? Case::kLower : Case::kUpper;
    in_word = is_letter(c.code);
    return chosen;
  });
}

Result<MarkedText> title_words(TemplateRuntime& runtime, const MarkedText& text) {
  bool in_word = false;
  return cased(runtime, text, [&in_word](Character c) {
    const Case chosen = in_word ? Case::kLower : Case::kUpper;
    in_word = !is_python_space(c.code) &&
              std::string_view("-({[<").find(static_cast<char>(c.code < 0x80 ? c.code : 'x')) ==
                  std::string_view::npos;
    return chosen;
  });
}

}  // namespace tidekv
