#include "chat/template_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "chat/template_operators.h"

namespace tidekv {
namespace {

class JsonWriter {
 public:
  JsonWriter(TemplateRuntime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  Status write(const Value& value) {
    TIDEKV_TRY(runtime_.step());
    if (const auto* text = value.get<MarkedText>()) {
      return write_text(*text);
    }
    if (const ValueList* list = value.list()) {
      return list->kind == ValueList::Kind::kList || list->kind == ValueList::Kind::kTuple
                 ? write_list(*list)
                 : no_json(value);
    }
    if (const ValueDict* dict = value.dict()) {
      return write_dict(*dict);
    }
    if (!value.is<NoneValue>() && !is_number(value)) {
      return no_json(value);
    }
    builder_.append(scalar(value));
    return Ok{};
  }

  TextBuilder& builder() { return builder_; }

 private:
  Error no_json(const Value& value) const {
    return runtime_.error("tojson does not take " + std::string(type_name(value)));
  }

  static std::string scalar(const Value& value) {
    if (value.is<NoneValue>()) {
      return "null";
    }
    if (const bool* flag = value.get<bool>()) {
      return *flag ? "true" : "false";
    }
    const double* number = value.get<double>();
    if (number == nullptr) {
      return std::to_string(*value.get<std::int64_t>());
    }
    return float_text(*number);
  }

  void line_break() {
    if (!style_.indented) {
      return;
    }
    builder_.append("\n");
    for (int i = 0; i < level_; ++i) {
      builder_.append(style_.indent);
    }
  }

  Status write_list(const ValueList& list) {
    builder_.append("[");
    ++level_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      TIDEKV_TRY(separate(i));
      TIDEKV_TRY(write(list.items[i]));
    }
    --level_;
    if (!list.items.empty()) {
      line_break();
    }
    builder_.append("]");
    return Ok{};
  }

  Status separate(std::size_t i) {
    TIDEKV_TRY(runtime_.check_text_size(builder_.size() + style_.indent.bytes.size() * 80));
    if (i > 0) {
      builder_.append(style_.indented ? "," : ", ");
    }
    line_break();
    return Ok{};
  }

  Status write_dict(const ValueDict& dict) {
    std::vector<std::pair<Value, Value>> entries = dict.entries;
    if (style_.sort_keys) {
      TIDEKV_TRY(sort(entries));
    }
    builder_.append("{");
    ++level_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      TIDEKV_TRY(separate(i));
      TIDEKV_TRY(write_key(entries[i].first));
      builder_.append(": ");
      TIDEKV_TRY(write(entries[i].second));
    }
    --level_;
    if (!entries.empty()) {
      line_break();
    }
    builder_.append("}");
    return Ok{};
  }

  Status sort(std::vector<std::pair<Value, Value>>& entries) {
    TIDEKV_TRY(runtime_.step(entries.size() * entries.size()));
    for (const auto& [key, value] : entries) {
      if (!key.is<MarkedText>()) {
        return runtime_.error("tojson sorts only keys that are strings");
      }
    }
    std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
      return a.first.template get<MarkedText>()->bytes < b.first.template get<MarkedText>()->bytes;
    });
    return Ok{};
  }

  Status write_key(const Value& key) {
    if (const auto* text = key.get<MarkedText>()) {
      return write_text(*text);
    }
    if (!key.is<NoneValue>() && !is_number(key)) {
      return no_json(key);
    }
    builder_.append("\"" + scalar(key) + "\"");
    return Ok{};
  }

  Status write_text(const MarkedText& text) {
    builder_.append("\"");
    std::size_t done = 0;  // bytes that stand for themselves are appended together
    for (std::size_t at = 0; at < text.bytes.size();) {
      const Character c = first_character(text.bytes.substr(at));
      const std::string escape = escaped(c.code);
      if (!escape.empty()) {
        TIDEKV_TRY(runtime_.append(builder_, text, done, at));
        TIDEKV_TRY(runtime_.step());
        builder_.append(escape, is_marked(text, at));
        done = at + c.length;
      }
      at += c.length;
    }
    TIDEKV_TRY(runtime_.append(builder_, text, done, text.bytes.size()));
    builder_.append("\"");
    return Ok{};
  }

  // Empty: the character stands for itself.
  std::string escaped(std::int32_t code) const {
    constexpr std::string_view kSpecial = "\"\\\n\r\t\b\f";
    constexpr std::string_view kLetters = "\"\\nrtbf";
    if (code < 0) {
      return "";
    }
    if (code < 0x80) {
      if (const std::size_t i = kSpecial.find(static_cast<char>(code));
          i != std::string_view::npos) {
        return std::string("\\") + kLetters[i];
      }
    }
    if (code >= 0x20 && (code < 0x80 || !style_.ascii_only) &&
        (code != 0x7F || !style_.ascii_only)) {
      return "";
    }
    if (code < 0x10000) {
      return unit(code);
    }
    const std::int32_t rest = code - 0x10000;  // two UTF-16 surrogates
    return unit(0xD800 + (rest >> 10)) + unit(0xDC00 + (rest & 0x3FF));
  }
  static std::string unit(std::int32_t code) {
    std::array<char, 8> out{};
    std::snprintf(out.data(), out.size(), "\\u%04x", static_cast<unsigned>(code) & 0xFFFFU);
    return out.data();
  }

  TemplateRuntime& runtime_;
  const JsonStyle& style_;
  TextBuilder builder_;
  int level_ = 0;
};

}  // namespace

Result<MarkedText> to_json(TemplateRuntime& runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  TIDEKV_TRY(writer.write(value));
  TIDEKV_TRY(runtime.step(writer.builder().size()));
  return runtime.text(writer.builder());
}

}  // namespace tidekv
