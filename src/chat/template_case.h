// Upper and lower case, as Python's str has them.
#pragma once

#include "chat/template_runtime.h"
#include "chat/template_text.h"
#include "tidekv/result.h"

namespace tidekv {

Result<MarkedText> upper_case(TemplateRuntime& runtime, const MarkedText& text);
Result<MarkedText> lower_case(TemplateRuntime& runtime, const MarkedText& text);
// The first character upper, all others lower.
Result<MarkedText> capitalized(TemplateRuntime& runtime, const MarkedText& text);
// str.title(): every stretch of letters capitalized.
Result<MarkedText> title_case(TemplateRuntime& runtime, const MarkedText& text);
// Jinja's filter `title`: what follows white space, a hyphen or an opening bracket.
Result<MarkedText> title_words(TemplateRuntime& runtime, const MarkedText& text);

}  // namespace tidekv
