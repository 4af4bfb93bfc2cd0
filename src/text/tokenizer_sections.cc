#include "text/tokenizer_sections.h"

#include <nlohmann/json.hpp>

#include "text/json_fields.h"
#include "text/pattern_syntax.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxSteps = 16;

// What ByteLevel cuts by when use_regex is on.
constexpr const char* kByteLevelPattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

// Switches that change the result are refused unless they are off.
Status require_off(const JsonFields& model, std::string_view name) {
  const json* value = model.find(name);
  const bool off = value == nullptr || value->is_null() || *value == false || *value == "" ||
                   (value->is_number() && *value == 0);
  return off ? Status(Ok{}) : Status(model.unsupported(name, "null, or this off"));
}

Status read_model(const json& value, const std::string& where, TokenizerSpec& spec) {
  TIDEKV_ASSIGN(
      const JsonFields model,
      JsonFields::of(value, where,
                     {"type", "dropout", "unk_token", "continuing_subword_prefix",
                      "end_of_word_suffix", "fuse_unk", "byte_fallback", "ignore_merges"}));
  TIDEKV_ASSIGN(const std::string type, model.text("type"));
  if (type != "BPE") {
    return model.unsupported("type", "\"BPE\"");
  }
  // unk_token and fuse_unk never matter: every byte has a token.
  for (const std::string_view name :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"}) {
    TIDEKV_TRY(require_off(model, name));
  }
  TIDEKV_ASSIGN(spec.ignore_merges, model.boolean_or("ignore_merges", false));
  return Ok{};
}

Status read_byte_level(const json& value, const std::string& where, TokenizerSpec& spec) {
  TIDEKV_ASSIGN(
      const JsonFields fields,
      JsonFields::of(value, where, {"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  TIDEKV_ASSIGN(const bool prefix_space, fields.boolean("add_prefix_space"));
  TIDEKV_ASSIGN(const bool use_regex, fields.boolean_or("use_regex", true));
  if (prefix_space) {
    spec.pre_tokenizer.push_back({.kind = PreTokenizerStep::Kind::kPrefixSpace,
                                  .pattern = {},
                                  .field = fields.path("add_prefix_space")});
  }
  if (use_regex) {
    spec.pre_tokenizer.push_back({.pattern = kByteLevelPattern, .field = fields.path("use_regex")});
  }
  return Ok{};
}

Status read_digits(const json& value, const std::string& where, TokenizerSpec& spec) {
  TIDEKV_ASSIGN(const JsonFields fields,
                JsonFields::of(value, where, {"type", "individual_digits"}));
  TIDEKV_ASSIGN(const bool individual, fields.boolean("individual_digits"));
  spec.pre_tokenizer.push_back({.pattern = individual ? "\\p{N}" : "\\p{N}+", .field = where});
  return Ok{};
}

Status read_split(const json& value, const std::string& where, TokenizerSpec& spec) {
  TIDEKV_ASSIGN(const JsonFields fields,
                JsonFields::of(value, where, {"type", "pattern", "behavior", "invert"}));
  PreTokenizerStep step{.pattern = {}, .field = fields.path("pattern")};
  TIDEKV_ASSIGN(const std::string behavior, fields.text("behavior"));
  if (behavior != "Isolated" && behavior != "Removed") {
    return fields.unsupported("behavior", "\"Isolated\" or \"Removed\"");
  }
  step.behavior = behavior == "Isolated" ? SplitBehavior::kIsolated : SplitBehavior::kRemoved;
  TIDEKV_ASSIGN(step.invert, fields.boolean("invert"));
  TIDEKV_ASSIGN(const json* pattern, fields.required("pattern"));
  TIDEKV_ASSIGN(const JsonFields forms, JsonFields::of(*pattern, step.field, {"Regex", "String"}));
  if (pattern->size() != 1) {
    return Error{ErrorCode::kBadFile, step.field + " has " + std::to_string(pattern->size()) +
                                          " fields; expected one: Regex or String"};
  }
  if (forms.find("Regex") != nullptr) {
    TIDEKV_ASSIGN(step.pattern, forms.text("Regex"));
  } else {
    TIDEKV_ASSIGN(const std::string literal, forms.text("String"));
    step.pattern = pattern_for_literal(literal);
  }
  spec.pre_tokenizer.push_back(std::move(step));
  return Ok{};
}

Result<std::string> type_of(const json& value, const std::string& where) {
  if (!value.is_object() || !value.contains("type") || !value["type"].is_string()) {
    return Error{ErrorCode::kBadFile,
                 where + " is " + shown(value) + "; expected an object with a \"type\""};
  }
  return value["type"].get<std::string>();
}

Error unsupported_type(const std::string& where, const std::string& type,
                       const std::string& expected) {
  return Error{ErrorCode::kUnsupported,
               where + " of type " + quoted_text(type) + " is not supported; expected " + expected};
}

// Calls read(element, where) for `value`, or for each element of `list` if it is a Sequence.
template <typename Read>
Status for_each_in_sequence(const json& value, const std::string& where, const char* list,
                            const Read& read) {
  TIDEKV_ASSIGN(const std::string type, type_of(value, where));
  if (type != "Sequence") {
    return read(value, where);
  }
  TIDEKV_ASSIGN(const JsonFields fields, JsonFields::of(value, where, {"type", list}));
  TIDEKV_ASSIGN(const json* elements, fields.array(list));
  for (std::size_t i = 0; i < elements->size(); ++i) {
    TIDEKV_TRY(read((*elements)[i], fields.path(list) + "[" + std::to_string(i) + "]"));
  }
  return Ok{};
}

Status read_pre_tokenizer(const json& value, const std::string& where, TokenizerSpec& spec) {
  bool byte_level = false;
  const auto read = [&](const json& step, const std::string& step_where) -> Status {
    TIDEKV_ASSIGN(const std::string type, type_of(step, step_where));
    if (byte_level || spec.pre_tokenizer.size() >= kMaxSteps) {
      return Error{ErrorCode::kUnsupported, step_where + ": expected at most " +
                                                std::to_string(kMaxSteps) +
                                                " steps, and none after ByteLevel"};
    }
    if (type == "Split") {
      return read_split(step, step_where, spec);
    }
    if (type == "Digits") {
      return read_digits(step, step_where, spec);
    }
    byte_level = type == "ByteLevel";
    return byte_level ? read_byte_level(step, step_where, spec)
                      : Status(unsupported_type(step_where, type, "Split, Digits or ByteLevel"));
  };
  TIDEKV_TRY(for_each_in_sequence(value, where, "pretokenizers", read));
  if (!byte_level) {
    return Error{ErrorCode::kUnsupported,
                 where + " does not end in ByteLevel; only byte-level BPE is supported"};
  }
  return Ok{};
}

Status read_decoder(const json& value, const std::string& where) {
  return for_each_in_sequence(
      value, where, "decoders", [](const json& step, const std::string& step_where) -> Status {
        TIDEKV_ASSIGN(const std::string type, type_of(step, step_where));
        return type == "ByteLevel" ? Status(Ok{})
                                   : Status(unsupported_type(step_where, type, "ByteLevel"));
      });
}

// The one id that special_tokens gives for `name`.
Result<std::int32_t> template_token_id(const JsonFields& fields, const std::string& name) {
  TIDEKV_ASSIGN(const json* tokens, fields.required("special_tokens"));
  const std::string where = fields.path("special_tokens");
  if (!tokens->is_object() || !tokens->contains(name)) {
    return Error{ErrorCode::kBadFile,
                 where + " lacks " + quoted_text(name) + "; expected what \"single\" names"};
  }
  TIDEKV_ASSIGN(
      const JsonFields token,
      JsonFields::of((*tokens)[name], where + "." + quoted_text(name), {"id", "ids", "tokens"}));
  TIDEKV_ASSIGN(const json* ids, token.array("ids"));
  const bool one_id = ids->size() == 1 && (*ids)[0].is_number_unsigned() &&
                      (*ids)[0].get<std::uint64_t>() <= INT32_MAX;
  if (!one_id) {
    return token.unsupported("ids", "exactly one token id");
  }
  return (*ids)[0].get<std::int32_t>();
}

// Accepts what puts at most one token, the BOS, before the text and none behind it.
Status read_template(const json& value, const std::string& where, TokenizerSpec& spec) {
  TIDEKV_ASSIGN(const JsonFields fields,
                JsonFields::of(value, where, {"type", "single", "pair", "special_tokens"}));
  TIDEKV_ASSIGN(const json* single, fields.array("single"));
  std::vector<std::string> before;
  bool text_seen = false;
  for (std::size_t i = 0; i < single->size(); ++i) {
    const std::string piece_where = fields.path("single") + "[" + std::to_string(i) + "]";
    TIDEKV_ASSIGN(const JsonFields piece,
                  JsonFields::of((*single)[i], piece_where, {"SpecialToken", "Sequence"}));
    const bool is_text = piece.find("Sequence") != nullptr;
    TIDEKV_ASSIGN(const json* body, piece.required(is_text ? "Sequence" : "SpecialToken"));
    TIDEKV_ASSIGN(const JsonFields names, JsonFields::of(*body, piece_where, {"id", "type_id"}));
    TIDEKV_ASSIGN(const std::string id, names.text("id"));
    if (text_seen || (is_text && id != "A")) {
      return Error{ErrorCode::kUnsupported, piece_where + ": " + quoted_text(id) +
                                                " is not supported here; expected nothing behind "
                                                "the text, Sequence A"};
    }
    text_seen = is_text;
    if (!is_text) {
      before.push_back(id);
    }
  }
  if (!text_seen || before.size() > 1 || (!before.empty() && spec.bos_id >= 0)) {
    return Error{ErrorCode::kUnsupported, fields.path("single") +
                                              ": expected at most one special token, then the "
                                              "text, Sequence A"};
  }
  if (!before.empty()) {
    spec.bos_token = before[0];
    TIDEKV_ASSIGN(spec.bos_id, template_token_id(fields, spec.bos_token));
  }
  return Ok{};
}

// ByteLevel here only trims offsets, which nobody asks for.
Status read_post_processor(const json& value, const std::string& where, TokenizerSpec& spec) {
  return for_each_in_sequence(
      value, where, "processors", [&](const json& step, const std::string& step_where) -> Status {
        TIDEKV_ASSIGN(const std::string type, type_of(step, step_where));
        if (type == "TemplateProcessing") {
          return read_template(step, step_where, spec);
        }
        return type == "ByteLevel"
                   ? Status(Ok{})
                   : Status(unsupported_type(step_where, type, "TemplateProcessing or ByteLevel"));
      });
}

}  // namespace

// `truncation` and `padding` are the caller's business, as in Transformers, and not looked at.
Status read_sections(const json& root, const std::string& file, TokenizerSpec& spec) {
  TIDEKV_ASSIGN(const JsonFields fields,
                JsonFields::of(root, file + ": ",
                               {"version", "truncation", "padding", "normalizer", "pre_tokenizer",
                                "post_processor", "decoder", "model"}));
  TIDEKV_ASSIGN(const json* model, fields.required("model"));
  TIDEKV_TRY(read_model(*model, fields.path("model"), spec));
  const json* version = fields.find("version");
  if (version != nullptr && *version != "1.0") {
    return fields.unsupported("version", "\"1.0\"");
  }
  const json* normalizer = fields.find("normalizer");
  if (normalizer != nullptr && !normalizer->is_null()) {
    TIDEKV_ASSIGN(const std::string type, type_of(*normalizer, fields.path("normalizer")));
    return unsupported_type(fields.path("normalizer"), type, "null");
  }
  TIDEKV_ASSIGN(const json* pre_tokenizer, fields.required("pre_tokenizer"));
  TIDEKV_TRY(read_pre_tokenizer(*pre_tokenizer, fields.path("pre_tokenizer"), spec));
  TIDEKV_ASSIGN(const json* decoder, fields.required("decoder"));
  TIDEKV_TRY(read_decoder(*decoder, fields.path("decoder")));
  const json* post_processor = fields.find("post_processor");
  if (post_processor == nullptr || post_processor->is_null()) {
    return Ok{};
  }
  return read_post_processor(*post_processor, fields.path("post_processor"), spec);
}

Result<AddedToken> read_added_token(const json& entry, const std::string& where) {
  TIDEKV_ASSIGN(const JsonFields fields, JsonFields::of(entry, where,
                                                        {"id", "content", "single_word", "lstrip",
                                                         "rstrip", "normalized", "special"}));
  AddedToken token;
  TIDEKV_ASSIGN(const std::int64_t id, fields.integer("id"));
  if (id < 0 || id > INT32_MAX) {
    return Error{ErrorCode::kBadFile, fields.path("id") + " is " + std::to_string(id) +
                                          "; expected a token id, 0 or above"};
  }
  token.id = static_cast<std::int32_t>(id);
  TIDEKV_ASSIGN(token.content, fields.text("content"));
  TIDEKV_ASSIGN(const bool single_word, fields.boolean("single_word"));
  if (single_word) {
    return fields.unsupported("single_word", "false");
  }
  TIDEKV_ASSIGN(token.lstrip, fields.boolean("lstrip"));
  TIDEKV_ASSIGN(token.rstrip, fields.boolean("rstrip"));
  TIDEKV_ASSIGN(token.normalized, fields.boolean("normalized"));
  TIDEKV_ASSIGN(token.special, fields.boolean("special"));
  return token;
}

}  // namespace tidekv
