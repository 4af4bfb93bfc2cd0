// What Python's str can do, on marked texts.
#pragma once

#include <cstdint>
#include <vector>

#include "chat/template_runtime.h"
#include "chat/template_value.h"
#include "tidekv/result.h"

namespace tidekv {

enum class StripEnds : std::uint8_t { kLeft, kRight, kBoth };

// Without the characters of `set` at its ends; without white space if there is no set.
Result<MarkedText> stripped(TemplateRuntime& runtime, const MarkedText& text, const MarkedText* set,
                            StripEnds ends);

enum class SplitSide : std::uint8_t { kLeft, kRight };
struct SplitOptions {
  std::int64_t max_splits = -1;  // negative: no limit
  SplitSide side = SplitSide::kLeft;
};

// The parts between separators; at stretches of white space if there is no separator.
Result<std::vector<Value>> split_text(TemplateRuntime& runtime, const MarkedText& text,
                                      const MarkedText* separator, const SplitOptions& options);
// The lines without their ends, at every line end that Unicode knows.
Result<std::vector<Value>> lines_of(TemplateRuntime& runtime, const MarkedText& text);

// `count` occurrences replaced from the left; all if it is negative.
Result<MarkedText> replaced(TemplateRuntime& runtime, const MarkedText& text,
                            const MarkedText& old_part, const MarkedText& new_part,
                            std::int64_t count);

enum class ListTexts : std::uint8_t { kStringsOnly, kAnything };

// The items of `list` with `separator` between them.
Result<MarkedText> joined_list(TemplateRuntime& runtime, const MarkedText& separator,
                               const Value& list, ListTexts texts);

// The characters in reverse.
Result<MarkedText> reversed_text(TemplateRuntime& runtime, const MarkedText& text);

}  // namespace tidekv
