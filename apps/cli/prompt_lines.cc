#include "prompt_lines.h"

#include <algorithm>
#include <utility>

#include "base/field_reader.h"

namespace tidekv::cli {
namespace {

constexpr std::size_t kMaxLines = 100000;
constexpr std::int64_t kMaxDepth = 8;
constexpr std::int64_t kMaxMessageParts = 100000;  // objects, roles and contents of a conversation

Error bad(const std::string& where, const std::string& what) {
  return Error{ErrorCode::kBadFile, where + ": " + what};
}

Result<std::string> read_id(const FieldReader& fields, const std::string& line_number) {
  const JsonValue* value = fields.find("id");
  if (value == nullptr) {
    return line_number;
  }
  if (const auto* text = std::get_if<std::string>(&value->data)) {
    return *text;
  }
  if (const auto* number = std::get_if<std::int64_t>(&value->data)) {
    return std::to_string(*number);
  }
  return fields.error(ErrorCode::kBadFile, "id", "a string or a whole number");
}

Result<std::string> read_text(const FieldReader& fields, std::string_view name) {
  TIDEKV_ASSIGN(std::string text, fields.string(name, "a string that is not empty"));
  if (text.empty()) {
    return fields.error(ErrorCode::kBadFile, name, "a string that is not empty");
  }
  return text;
}

Result<std::vector<std::int32_t>> read_tokens(const FieldReader& fields,
                                              const PromptLimits& limits) {
  TIDEKV_ASSIGN(const std::vector<std::int64_t> ids,
                fields.integers("tokens", {0, limits.vocab_size - 1}));
  if (ids.empty()) {
    return bad(fields.where(), "field 'tokens' is empty; expected one id at least");
  }
  return std::vector<std::int32_t>(ids.begin(), ids.end());
}

Result<std::vector<ChatMessage>> read_messages(const FieldReader& fields) {
  TIDEKV_ASSIGN(const std::vector<FieldReader> objects, fields.objects("messages"));
  std::vector<ChatMessage> messages;
  for (const FieldReader& object : objects) {
    TIDEKV_TRY(object.only({"role", "content"}));
    ChatMessage message;
    TIDEKV_ASSIGN(message.role, object.string("role", "'system', 'user' or 'assistant'"));
    TIDEKV_ASSIGN(message.content, object.string("content", "what the message says"));
    messages.push_back(std::move(message));
  }
  if (messages.empty()) {
    return bad(fields.where(), "field 'messages' is empty; expected one message at least");
  }
  return messages;
}

Result<std::vector<std::string>> read_answers(const FieldReader& fields) {
  constexpr std::string_view kRight = "a string that is not empty, or an array of such";
  const JsonValue* value = fields.find("answer");
  if (value == nullptr) {
    return std::vector<std::string>();
  }
  std::vector<std::string> answers;
  if (const auto* array = std::get_if<JsonArray>(&value->data)) {
    for (const JsonValue& element : *array) {
      const auto* text = std::get_if<std::string>(&element.data);
      if (text == nullptr || text->empty()) {
        return fields.error_in(ErrorCode::kBadFile, "answer", element, kRight);
      }
      answers.push_back(*text);
    }
  } else if (const auto* text = std::get_if<std::string>(&value->data)) {
    answers.push_back(*text);
  }
  if (answers.empty() || answers.front().empty()) {
    return fields.error(ErrorCode::kBadFile, "answer", kRight);
  }
  return answers;
}

Status read_prompt_of(const FieldReader& fields, const PromptLimits& limits, PromptLine& line) {
  const bool has_text = fields.find("prompt") != nullptr;
  const bool has_tokens = fields.find("tokens") != nullptr;
  const bool has_messages = fields.find("messages") != nullptr;
  if (int{has_text} + int{has_tokens} + int{has_messages} != 1) {
    return bad(
        fields.where(),
        std::string(has_text || has_tokens || has_messages ? "several prompts" : "no prompt") +
            "; expected one of 'prompt', 'tokens' and 'messages'");
  }
  if (has_text) {
    TIDEKV_ASSIGN(line.prompt, read_text(fields, "prompt"));
  } else if (has_tokens) {
    TIDEKV_ASSIGN(line.prompt, read_tokens(fields, limits));
  } else {
    TIDEKV_ASSIGN(line.prompt, read_messages(fields));
  }
  return Ok{};
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

Result<PromptLine> parse_prompt_line(std::string_view text, const std::string& where,
                                     const PromptLimits& limits) {
  const JsonLimits json_limits{.max_depth = kMaxDepth,
                               .max_values = std::max(limits.max_tokens + 1, kMaxMessageParts)};
  TIDEKV_ASSIGN(const JsonObject object, parse_json_object(text, where, json_limits));
  const FieldReader fields(object, where);
  TIDEKV_TRY(fields.only({"prompt", "tokens", "messages", "prefix", "answer", "id"}));
  PromptLine line;
  line.where = where;
  TIDEKV_ASSIGN(line.id, read_id(fields, where.substr(where.rfind(' ') + 1)));
  TIDEKV_TRY(read_prompt_of(fields, limits, line));
  if (fields.find("prefix") != nullptr) {
    TIDEKV_ASSIGN(line.prefix, fields.string("prefix", "a string"));
  }
  TIDEKV_ASSIGN(line.answers, read_answers(fields));
  return line;
}

Result<std::vector<PromptLine>> parse_prompt_lines(std::string_view text, const std::string& file,
                                                   const PromptLimits& limits) {
  std::vector<PromptLine> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (is_blank(line)) {
      continue;
    }
    const std::string where = file + ": line " + std::to_string(number);
    if (lines.size() == kMaxLines) {
      return bad(where,
                 "more than " + std::to_string(kMaxLines) + " prompts; expected at most that");
    }
    TIDEKV_ASSIGN(PromptLine parsed, parse_prompt_line(line, where, limits));
    lines.push_back(std::move(parsed));
  }
  if (lines.empty()) {
    return bad(file, "no prompts; expected one JSON object a line, like {\"prompt\": \"...\"}");
  }
  return lines;
}

}  // namespace tidekv::cli
