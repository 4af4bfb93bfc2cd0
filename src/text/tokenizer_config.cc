#include "text/tokenizer_config.h"

#include <charconv>
#include <utility>

#include "base/field_reader.h"
#include "base/json_value.h"

namespace tidekv {
namespace {

constexpr JsonLimits kLimits = {.max_depth = 32, .max_values = 1'000'000};

// The field is the token's text, or an object with the text as its "content".
Result<std::string> read_bos_token(const FieldReader& fields) {
  const JsonValue* bos = fields.find("bos_token");
  if (bos == nullptr) {
    return std::string();
  }
  if (std::holds_alternative<JsonObject>(bos->data)) {
    TIDEKV_ASSIGN(const FieldReader token, fields.required_object("bos_token"));
    return token.string("content", "a string");
  }
  return fields.string("bos_token", "a string, or an object with \"content\"");
}

// The object's members that `wanted` says yes to.
template <typename Wanted>
Result<JsonObject> members_of(std::string_view text, const std::string& file,
                              const Wanted& wanted) {
  JsonObject members;
  TIDEKV_TRY(for_each_json_member(text, file, kLimits, [&](JsonMember member) -> Status {
    if (wanted(member.key)) {
      members.push_back(std::move(member));
    }
    return Ok{};
  }));
  return members;
}

Result<std::optional<bool>> optional_boolean(const FieldReader& fields, std::string_view name) {
  if (fields.find(name) == nullptr) {
    return std::optional<bool>{};
  }
  TIDEKV_ASSIGN(const bool value, fields.boolean(name));
  return std::optional<bool>{value};
}

Result<AddedToken> read_token(const FieldReader& fields, const std::string& id_text) {
  AddedToken token;
  const auto [end, error] =
      std::from_chars(id_text.data(), id_text.data() + id_text.size(), token.id);
  if (error != std::errc{} || end != id_text.data() + id_text.size() || token.id < 0) {
    return Error{ErrorCode::kBadFile, fields.where() + ": added_tokens_decoder: key " +
                                          in_quotes(id_text) +
                                          " is no id; expected a whole number"};
  }
  TIDEKV_ASSIGN(token.content, fields.string("content", "a string"));
  TIDEKV_ASSIGN(token.lstrip, fields.boolean_or("lstrip", false));
  TIDEKV_ASSIGN(token.rstrip, fields.boolean_or("rstrip", false));
  TIDEKV_ASSIGN(token.special, fields.boolean_or("special", false));
  TIDEKV_ASSIGN(const bool single_word, fields.boolean_or("single_word", false));
  if (single_word) {
    return fields.error(ErrorCode::kUnsupported, "single_word", "false");
  }
  return token;
}

}  // namespace

Result<TokenizerConfig> read_tokenizer_config(std::string_view text, const std::string& file) {
  TIDEKV_ASSIGN(const JsonObject members, members_of(text, file, [](const std::string& key) {
                  return key == "add_bos_token" || key == "bos_token" || key == "legacy" ||
                         key == "add_prefix_space";
                }));
  const FieldReader fields(members, file);
  TokenizerConfig config;
  TIDEKV_ASSIGN(config.add_bos_token, optional_boolean(fields, "add_bos_token"));
  TIDEKV_ASSIGN(config.bos_token, read_bos_token(fields));
  TIDEKV_ASSIGN(config.legacy, optional_boolean(fields, "legacy"));
  TIDEKV_ASSIGN(config.add_prefix_space, optional_boolean(fields, "add_prefix_space"));
  return config;
}

Result<std::vector<AddedToken>> read_added_tokens_decoder(std::string_view text,
                                                          const std::string& file) {
  TIDEKV_ASSIGN(const JsonObject members, members_of(text, file, [](const std::string& key) {
                  return key == "added_tokens_decoder";
                }));
  const FieldReader fields(members, file);
  TIDEKV_ASSIGN(const std::optional<FieldReader> decoder, fields.object("added_tokens_decoder"));
  std::vector<AddedToken> tokens;
  if (!decoder) {
    return tokens;
  }
  for (const JsonMember& member : decoder->members()) {
    const auto* token = std::get_if<JsonObject>(&member.value.data);
    if (token == nullptr) {
      return decoder->error(ErrorCode::kBadFile, member.key, "an object");
    }
    const FieldReader token_fields(*token, file, decoder->path(member.key) + ".");
    TIDEKV_ASSIGN(AddedToken read, read_token(token_fields, member.key));
    tokens.push_back(std::move(read));
  }
  return tokens;
}

}  // namespace tidekv
