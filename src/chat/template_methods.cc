// Methods of Python's str.
#include <algorithm>
#include <array>
#include <string>

#include "base/json_value.h"
#include "chat/template_builtins.h"
#include "chat/template_case.h"
#include "chat/template_operators.h"
#include "chat/template_text_operations.h"

namespace tidekv {
namespace {

const MarkedText& self(const BuiltinCall& call) { return *call.value.get<MarkedText>(); }

Result<Value> value_of(Result<MarkedText> text) {
  if (!text.ok()) {
    return std::move(text).error();
  }
  return Value{text.value()};
}

// Argument `i`, which must be a string.
Result<MarkedText> text_argument(const BuiltinCall& call, std::size_t i) {
  const auto* text = call.args[i] ? call.args[i]->get<MarkedText>() : nullptr;
  if (text == nullptr) {
    return call.runtime.error("a str method takes strings, not " +
                              std::string(call.args[i] ? type_name(*call.args[i]) : "nothing"));
  }
  return *text;
}

// Argument `i`, an integer; -1 if it is not given.
Result<std::int64_t> count_argument(const BuiltinCall& call, std::size_t i) {
  std::int64_t buffer = 0;
  if (!call.args[i]) {
    return std::int64_t{-1};
  }
  const std::int64_t* number = integer_of(*call.args[i], buffer);
  if (number == nullptr) {
    return call.runtime.error("a count is an integer, not " +
                              std::string(type_name(*call.args[i])));
  }
  return *number;
}

Result<Value> strip_ends(BuiltinCall& call, StripEnds ends) {
  if (!call.args[0] || call.args[0]->is<NoneValue>()) {
    return value_of(stripped(call.runtime, self(call), nullptr, ends));
  }
  TIDEKV_ASSIGN(const MarkedText set, text_argument(call, 0));
  return value_of(stripped(call.runtime, self(call), &set, ends));
}
Result<Value> strip(BuiltinCall& call) { return strip_ends(call, StripEnds::kBoth); }
Result<Value> lstrip(BuiltinCall& call) { return strip_ends(call, StripEnds::kLeft); }
Result<Value> rstrip(BuiltinCall& call) { return strip_ends(call, StripEnds::kRight); }

Result<Value> split_side(BuiltinCall& call, SplitSide side) {
  TIDEKV_ASSIGN(const std::int64_t count, count_argument(call, 1));
  std::optional<MarkedText> separator;
  if (call.args[0] && !call.args[0]->is<NoneValue>()) {
    TIDEKV_ASSIGN(separator, text_argument(call, 0));
  }
  TIDEKV_ASSIGN(std::vector<Value> parts,
                split_text(call.runtime, self(call), separator ? &*separator : nullptr,
                           {.max_splits = count, .side = side}));
  return call.runtime.list(std::move(parts), ValueList::Kind::kList);
}
Result<Value> split(BuiltinCall& call) { return split_side(call, SplitSide::kLeft); }
Result<Value> rsplit(BuiltinCall& call) { return split_side(call, SplitSide::kRight); }

Result<Value> splitlines(BuiltinCall& call) {
  TIDEKV_ASSIGN(std::vector<Value> lines, lines_of(call.runtime, self(call)));
  return call.runtime.list(std::move(lines), ValueList::Kind::kList);
}

// Whether the text begins (or ends) with argument 0, or with one of a tuple.
Result<Value> has_affix(BuiltinCall& call, bool at_start) {
  std::vector<Value> affixes = {*call.args[0]};
  if (const ValueList* tuple = call.args[0]->list();
      tuple != nullptr && tuple->kind == ValueList::Kind::kTuple) {
    affixes = tuple->items;
  }
  for (const Value& affix : affixes) {
    const auto* text = affix.get<MarkedText>();
    if (text == nullptr) {
      return call.runtime.error("startswith and endswith take strings, not " +
                                std::string(type_name(affix)));
    }
    TIDEKV_TRY(call.runtime.step(text->bytes.size()));
    if (at_start ? self(call).bytes.starts_with(text->bytes)
                 : self(call).bytes.ends_with(text->bytes)) {
      return Value{true};
    }
  }
  return Value{false};
}
Result<Value> startswith(BuiltinCall& call) { return has_affix(call, true); }
Result<Value> endswith(BuiltinCall& call) { return has_affix(call, false); }

Result<Value> removeprefix(BuiltinCall& call) {
  TIDEKV_ASSIGN(const MarkedText prefix, text_argument(call, 0));
  const MarkedText& text = self(call);
  const std::size_t begin = text.bytes.starts_with(prefix.bytes) ? prefix.bytes.size() : 0;
  return Value{call.runtime.slice(text, begin, text.bytes.size())};
}
Result<Value> removesuffix(BuiltinCall& call) {
  TIDEKV_ASSIGN(const MarkedText suffix, text_argument(call, 0));
  const MarkedText& text = self(call);
  const std::size_t cut = text.bytes.ends_with(suffix.bytes) ? suffix.bytes.size() : 0;
  return Value{call.runtime.slice(text, 0, text.bytes.size() - cut)};
}

Result<Value> upper(BuiltinCall& call) { return value_of(upper_case(call.runtime, self(call))); }
Result<Value> lower(BuiltinCall& call) { return value_of(lower_case(call.runtime, self(call))); }
Result<Value> title(BuiltinCall& call) { return value_of(title_case(call.runtime, self(call))); }
Result<Value> capitalize(BuiltinCall& call) {
  return value_of(capitalized(call.runtime, self(call)));
}

Result<Value> replace(BuiltinCall& call) {
  TIDEKV_ASSIGN(const MarkedText old_part, text_argument(call, 0));
  TIDEKV_ASSIGN(const MarkedText new_part, text_argument(call, 1));
  TIDEKV_ASSIGN(const std::int64_t count, count_argument(call, 2));
  if (self(call).markup || old_part.markup || new_part.markup) {
    return call.runtime.error("replace() on text from 'safe' is not supported",
                              ErrorCode::kUnsupported);
  }
  return value_of(replaced(call.runtime, self(call), old_part, new_part, count));
}

Result<Value> join(BuiltinCall& call) {
  return value_of(joined_list(call.runtime, self(call), *call.args[0], ListTexts::kStringsOnly));
}

// {} stands for the next argument, {{ and }} for one brace; more is not supported.
Result<Value> format(BuiltinCall& call) {
  const MarkedText& text = self(call);
  TextBuilder builder;
  std::size_t next = 0;
  for (std::size_t at = 0; at < text.bytes.size(); ++at) {
    const std::string_view rest = text.bytes.substr(at);
    if (rest[0] != '{' && rest[0] != '}') {
      TIDEKV_TRY(call.runtime.append(builder, text, at, at + 1));
    } else if (rest.starts_with("{{") || rest.starts_with("}}")) {
      TIDEKV_TRY(call.runtime.append(builder, text, at, at + 1));
      ++at;
    } else if (rest.starts_with("{}") && next < call.rest.size()) {
      TIDEKV_ASSIGN(const MarkedText argument, to_text(call.runtime, call.rest[next++]));
      TIDEKV_TRY(call.runtime.append(builder, argument));
      ++at;
    } else {
      return call.runtime.error(
          "format() takes {} with an argument for each, not " + in_quotes(rest.substr(0, 20)),
          ErrorCode::kUnsupported);
    }
  }
  return Value{call.runtime.text(builder)};
}

// Characters before the first (or last) occurrence of argument 0; -1 if there is none.
Result<Value> find_part(BuiltinCall& call, bool first) {
  TIDEKV_ASSIGN(const MarkedText part, text_argument(call, 0));
  const std::string_view text = self(call).bytes;
  TIDEKV_TRY(call.runtime.step(text.size() + (first ? 0 : text.size() * part.bytes.size())));
  const std::size_t at = first ? find_text(text, part.bytes, 0) : text.rfind(part.bytes);
  if (at == std::string_view::npos) {
    return Value{std::int64_t{-1}};
  }
  return Value{static_cast<std::int64_t>(num_characters(text.substr(0, at)))};
}
Result<Value> find(BuiltinCall& call) { return find_part(call, true); }
Result<Value> rfind(BuiltinCall& call) { return find_part(call, false); }

Result<Value> count(BuiltinCall& call) {
  TIDEKV_ASSIGN(const MarkedText part, text_argument(call, 0));
  const std::string_view text = self(call).bytes;
  TIDEKV_TRY(call.runtime.step(text.size()));
  if (part.bytes.empty()) {
    return Value{static_cast<std::int64_t>(num_characters(text) + 1)};
  }
  std::int64_t found = 0;
  for (std::size_t at = find_text(text, part.bytes, 0); at != std::string_view::npos;
       at = find_text(text, part.bytes, at + part.bytes.size())) {
    TIDEKV_TRY(call.runtime.step(part.bytes.size()));
    ++found;
  }
  return Value{found};
}

constexpr std::array kTextMethods = {
    Builtin{"strip", strip, 0, {"chars"}},
    Builtin{"lstrip", lstrip, 0, {"chars"}},
    Builtin{"rstrip", rstrip, 0, {"chars"}},
    Builtin{"split", split, 0, {"sep", "maxsplit"}},
    Builtin{"rsplit", rsplit, 0, {"sep", "maxsplit"}},
    Builtin{"splitlines", splitlines, 0, {}},
    Builtin{"startswith", startswith, 1, {"prefix"}},
    Builtin{"endswith", endswith, 1, {"suffix"}},
    Builtin{"removeprefix", removeprefix, 1, {"prefix"}},
    Builtin{"removesuffix", removesuffix, 1, {"suffix"}},
    Builtin{"upper", upper, 0, {}},
    Builtin{"lower", lower, 0, {}},
    Builtin{"title", title, 0, {}},
    Builtin{"capitalize", capitalize, 0, {}},
    Builtin{"replace", replace, 2, {"old", "new", "count"}},
    Builtin{"join", join, 1, {"iterable"}},
    Builtin{"format", format, 0, {}, 0},
    Builtin{"find", find, 1, {"sub"}},
    Builtin{"rfind", rfind, 1, {"sub"}},
    Builtin{"count", count, 1, {"sub"}},
};
// What Python has besides: these are no missing attributes, but cannot be called either.
constexpr std::array kOtherTextMethods = {
    Builtin{"casefold"},   Builtin{"center"},    Builtin{"encode"},      Builtin{"expandtabs"},
    Builtin{"format_map"}, Builtin{"index"},     Builtin{"isalnum"},     Builtin{"isalpha"},
    Builtin{"isascii"},    Builtin{"isdecimal"}, Builtin{"isdigit"},     Builtin{"isidentifier"},
    Builtin{"islower"},    Builtin{"isnumeric"}, Builtin{"isprintable"}, Builtin{"isspace"},
    Builtin{"istitle"},    Builtin{"isupper"},   Builtin{"ljust"},       Builtin{"maketrans"},
    Builtin{"partition"},  Builtin{"rindex"},    Builtin{"rjust"},       Builtin{"rpartition"},
    Builtin{"swapcase"},   Builtin{"translate"}, Builtin{"zfill"},
};
}  // namespace

const Builtin* find_text_method(std::string_view name) {
  const Builtin* found = find_builtin(kTextMethods, name);
  return found != nullptr ? found : find_builtin(kOtherTextMethods, name);
}

}  // namespace tidekv
