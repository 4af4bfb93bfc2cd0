#include "chat/chat_template_file.h"

#include <cstdint>
#include <utility>

#include "base/field_reader.h"
#include "base/file.h"
#include "base/json_value.h"

namespace tidekv {
namespace {

constexpr std::int64_t kMaxTemplateBytes = 256 << 10;
constexpr std::int64_t kMaxConfigBytes = 16 << 20;
constexpr JsonLimits kLimits = {.max_depth = 32, .max_values = 1'000'000};
constexpr const char* kTemplateFile = "chat_template.jinja";
constexpr const char* kConfigFile = "tokenizer_config.json";

// The members of `file` that are named chat_template or *_token.
Result<JsonObject> read_members(const std::string& file) {
  TIDEKV_ASSIGN(const std::string text, read_small_file(file, kMaxConfigBytes));
  JsonObject wanted;
  TIDEKV_TRY(for_each_json_member(text, file, kLimits, [&](JsonMember member) -> Status {
    if (member.key == "chat_template" || member.key.ends_with("_token")) {
      wanted.push_back(std::move(member));
    }
    return Ok{};
  }));
  return wanted;
}

Error bad_field(const std::string& file, const std::string& what) {
  return Error{ErrorCode::kBadFile, file + ": chat_template " + what};
}

// The template named "default" of [{"name": ..., "template": ...}, ...].
Result<std::string> default_template(const JsonArray& list, const std::string& file) {
  std::string names;
  for (const JsonValue& item : list) {
    const auto* object = std::get_if<JsonObject>(&item.data);
    if (object == nullptr) {
      return bad_field(
          file, "holds " + describe(item) + "; expected objects with \"name\" and \"template\"");
    }
    const FieldReader fields(*object, file, "chat_template[].");
    TIDEKV_ASSIGN(const std::string name, fields.string("name", "a string"));
    if (name == "default") {
      return fields.string("template", "a string");
    }
    names += (names.empty() ? "" : ", ") + in_quotes(name);
  }
  return bad_field(file, "has no template named 'default', only: " + names.substr(0, 400));
}

Result<std::string> token_text(const FieldReader& fields, const char* name) {
  const JsonValue* token = fields.find(name);
  if (token == nullptr) {
    return std::string();
  }
  if (std::holds_alternative<JsonObject>(token->data)) {
    TIDEKV_ASSIGN(const FieldReader inner, fields.required_object(name));
    return inner.string("content", "a string");
  }
  return fields.string(name, "a string, or an object with \"content\"");
}

}  // namespace

Result<ChatTemplateSource> read_chat_template(const std::string& folder) {
  const std::string own_file = join_path(folder, kTemplateFile);
  if (something_at(own_file)) {
    TIDEKV_ASSIGN(std::string source, read_small_file(own_file, kMaxTemplateBytes));
    return ChatTemplateSource{std::move(source), own_file};
  }
  const std::string config = join_path(folder, kConfigFile);
  JsonObject members;
  if (something_at(config)) {
    TIDEKV_ASSIGN(members, read_members(config));
  }
  for (const JsonMember& member : members) {
    if (member.key != "chat_template" || member.value.is_null()) {
      continue;
    }
    ChatTemplateSource found{"", config + ": chat_template"};
    if (const auto* text = std::get_if<std::string>(&member.value.data)) {
      found.source = *text;
    } else if (const auto* list = std::get_if<JsonArray>(&member.value.data)) {
      TIDEKV_ASSIGN(found.source, default_template(*list, config));
    } else {
      return bad_field(config, "is " + describe(member.value) +
                                   "; expected a string, or a list of named templates");
    }
    return found;
  }
  return Error{ErrorCode::kNotFound, folder + ": no chat template: no " + kTemplateFile +
                                         ", and no \"chat_template\" in " + kConfigFile};
}

Result<SpecialTokenTexts> read_special_token_texts(const std::string& folder) {
  SpecialTokenTexts tokens;
  const std::string config = join_path(folder, kConfigFile);
  if (!something_at(config)) {
    return tokens;
  }
  TIDEKV_ASSIGN(const JsonObject members, read_members(config));
  const FieldReader fields(members, config);
  TIDEKV_ASSIGN(tokens.bos_token, token_text(fields, "bos_token"));
  TIDEKV_ASSIGN(tokens.eos_token, token_text(fields, "eos_token"));
  TIDEKV_ASSIGN(tokens.unk_token, token_text(fields, "unk_token"));
  TIDEKV_ASSIGN(tokens.pad_token, token_text(fields, "pad_token"));
  return tokens;
}

}  // namespace tidekv
