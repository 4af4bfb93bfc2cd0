#include "text/tokenizer_config.h"

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

}  // namespace

Result<TokenizerConfig> read_tokenizer_config(std::string_view text, const std::string& file) {
  JsonObject wanted;
  TIDEKV_TRY(for_each_json_member(text, file, kLimits, [&](JsonMember member) -> Status {
    if (member.key == "add_bos_token" || member.key == "bos_token") {
      wanted.push_back(std::move(member));
    }
    return Ok{};
  }));
  const FieldReader fields(wanted, file);
  TokenizerConfig config;
  TIDEKV_ASSIGN(config.add_bos_token, fields.boolean_or("add_bos_token", false));
  TIDEKV_ASSIGN(config.bos_token, read_bos_token(fields));
  return config;
}

}  // namespace tidekv
