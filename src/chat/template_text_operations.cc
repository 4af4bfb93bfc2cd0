#include "chat/template_text_operations.h"

#include <algorithm>
#include <utility>

#include "chat/template_operators.h"

namespace tidekv {
namespace {

// Bytes at the start, or the end, of `text` that are characters of `set`.
std::size_t set_at_start(std::string_view text, std::string_view set) {
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t length = first_character(text.substr(at)).length;
    if (set.find(text.substr(at, length)) == std::string_view::npos) {
      break;
    }
    at += length;
  }
  return at;
}

std::size_t set_at_end(std::string_view text, std::string_view set) {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t begin = end - 1;
    while (begin > 0 && end - begin < 4 &&
           first_character(text.substr(begin, end - begin)).length != end - begin) {
      --begin;
    }
    if (first_character(text.substr(begin, end - begin)).length != end - begin) {
      begin = end - 1;  // a damaged byte
    }
    if (set.find(text.substr(begin, end - begin)) == std::string_view::npos) {
      break;
    }
    end = begin;
  }
  return text.size() - end;
}

Status add_part(TemplateRuntime& runtime, std::vector<Value>& parts, const MarkedText& text,
                std::size_t begin, std::size_t end) {
  TIDEKV_TRY(runtime.check_list_size(parts.size() + 1));
  TIDEKV_TRY(runtime.step());
  parts.push_back(Value{runtime.slice(text, begin, end)});
  return Ok{};
}

Status split_at(TemplateRuntime& runtime, const MarkedText& text, std::string_view separator,
                const SplitOptions& options, std::vector<Value>& parts) {
  std::size_t begin = 0;
  for (std::int64_t left = options.max_splits; left != 0; --left) {
    const std::size_t at = find_text(text.bytes, separator, begin);
    if (at == std::string_view::npos) {
      break;
    }
    TIDEKV_TRY(runtime.step(separator.size()));
    TIDEKV_TRY(add_part(runtime, parts, text, begin, at));
    begin = at + separator.size();
  }
  return add_part(runtime, parts, text, begin, text.bytes.size());
}

Status split_at_from_right(TemplateRuntime& runtime, const MarkedText& text,
                           std::string_view separator, const SplitOptions& options,
                           std::vector<Value>& parts) {
  std::size_t end = text.bytes.size();
  for (std::int64_t left = options.max_splits; left != 0; --left) {
    const std::size_t at = text.bytes.substr(0, end).rfind(separator);
    if (at == std::string_view::npos) {
      break;
    }
    TIDEKV_TRY(add_part(runtime, parts, text, at + separator.size(), end));
    end = at;
  }
  TIDEKV_TRY(add_part(runtime, parts, text, 0, end));
  std::reverse(parts.begin(), parts.end());
  return Ok{};
}

Status split_at_space(TemplateRuntime& runtime, const MarkedText& text, std::int64_t max_splits,
                      std::vector<Value>& parts) {
  std::size_t at = python_space_at_start(text.bytes);
  for (std::int64_t left = max_splits; at < text.bytes.size(); --left) {
    std::size_t end = at;
    if (left == 0) {
      end = text.bytes.size();
    }
    while (left != 0 && end < text.bytes.size()) {
      const Character c = first_character(text.bytes.substr(end));
      if (is_python_space(c.code)) {
        break;
      }
      end += c.length;
    }
    TIDEKV_TRY(add_part(runtime, parts, text, at, end));
    at = end + python_space_at_start(text.bytes.substr(end));
  }
  return Ok{};
}

bool is_line_end(std::int32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}

}  // namespace

Result<MarkedText> stripped(TemplateRuntime& runtime, const MarkedText& text, const MarkedText* set,
                            StripEnds ends) {
  const std::size_t set_size = set == nullptr ? 1 : set->bytes.size();
  TIDEKV_TRY(runtime.step(text.bytes.size() * (1 + set_size / 8)));
  std::size_t begin = 0;
  std::size_t end = text.bytes.size();
  if (ends != StripEnds::kRight) {
    begin =
        set == nullptr ? python_space_at_start(text.bytes) : set_at_start(text.bytes, set->bytes);
  }
  if (ends != StripEnds::kLeft) {
    const std::string_view rest = text.bytes.substr(begin);
    end -= set == nullptr ? python_space_at_end(rest) : set_at_end(rest, set->bytes);
  }
  return runtime.slice(text, begin, end);
}

Result<std::vector<Value>> split_text(TemplateRuntime& runtime, const MarkedText& text,
                                      const MarkedText* separator, const SplitOptions& options) {
  std::vector<Value> parts;
  TIDEKV_TRY(runtime.step(text.bytes.size()));
  if (separator == nullptr) {
    if (options.side == SplitSide::kRight && options.max_splits >= 0) {
      return runtime.error("rsplit() at white space with a limit is not supported",
                           ErrorCode::kUnsupported);
    }
    TIDEKV_TRY(split_at_space(runtime, text, options.max_splits, parts));
    return parts;
  }
  if (separator->bytes.empty()) {
    return runtime.error("split() at an empty string; expected a separator");
  }
  if (options.side == SplitSide::kLeft) {
    TIDEKV_TRY(split_at(runtime, text, separator->bytes, options, parts));
    return parts;
  }
  TIDEKV_TRY(runtime.step(text.bytes.size() * separator->bytes.size()));  // rfind looks again
  TIDEKV_TRY(split_at_from_right(runtime, text, separator->bytes, options, parts));
  return parts;
}

Result<std::vector<Value>> lines_of(TemplateRuntime& runtime, const MarkedText& text) {
  std::vector<Value> lines;
  TIDEKV_TRY(runtime.step(text.bytes.size()));
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.bytes.size();) {
    const Character c = first_character(text.bytes.substr(at));
    if (!is_line_end(c.code)) {
      at += c.length;
      continue;
    }
    TIDEKV_TRY(add_part(runtime, lines, text, begin, at));
    at += text.bytes.substr(at).starts_with("\r\n") ? 2 : c.length;
    begin = at;
  }
  if (begin < text.bytes.size()) {
    TIDEKV_TRY(add_part(runtime, lines, text, begin, text.bytes.size()));
  }
  return lines;
}

Result<MarkedText> replaced(TemplateRuntime& runtime, const MarkedText& text,
                            const MarkedText& old_part, const MarkedText& new_part,
                            std::int64_t count) {
  TextBuilder builder;
  TIDEKV_TRY(runtime.step(text.bytes.size()));
  std::size_t done = 0;
  std::size_t from = 0;
  for (; count != 0; --count) {
    const std::size_t at = find_text(text.bytes, old_part.bytes, from);
    if (at == std::string_view::npos) {
      break;
    }
    TIDEKV_TRY(runtime.append(builder, text, done, at));
    TIDEKV_TRY(runtime.append(builder, new_part));
    TIDEKV_TRY(runtime.step(old_part.bytes.size()));
    done = at + old_part.bytes.size();
    from = done;
    if (old_part.bytes.empty()) {  // fits between all characters
      if (at == text.bytes.size()) {
        break;
      }
      from += first_character(text.bytes.substr(at)).length;
    }
  }
  TIDEKV_TRY(runtime.append(builder, text, done, text.bytes.size()));
  return runtime.text(builder);
}

Result<MarkedText> joined_list(TemplateRuntime& runtime, const MarkedText& separator,
                               const Value& list, ListTexts texts) {
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_of(runtime, list));
  TextBuilder builder;
  for (std::size_t i = 0; i < items->size(); ++i) {
    if (i > 0) {
      TIDEKV_TRY(runtime.append(builder, separator));
    }
    if (texts == ListTexts::kStringsOnly && !(*items)[i].is<MarkedText>()) {
      return runtime.error("join() takes strings, not " + std::string(type_name((*items)[i])));
    }
    TIDEKV_ASSIGN(const MarkedText text, to_text(runtime, (*items)[i]));
    TIDEKV_TRY(runtime.append(builder, text));
  }
  return runtime.text(builder);
}

Result<MarkedText> reversed_text(TemplateRuntime& runtime, const MarkedText& text) {
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_of(runtime, Value{text}));
  TextBuilder builder;
  for (auto item = items->rbegin(); item != items->rend(); ++item) {
    builder.append(*item->get<MarkedText>());
  }
  return runtime.text(builder);
}

}  // namespace tidekv
