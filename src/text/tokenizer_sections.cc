#include "text/tokenizer_sections.h"

#include <utility>

#include "base/json_value.h"
#include "text/known_pre_tokenizers.h"
#include "text/pattern_syntax.h"
#include "text/section_reading.h"
#include "text/space_mark_sections.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

constexpr std::size_t kMaxSteps = 16;
constexpr IntRange kTokenIds = {0, INT32_MAX};

bool is_off(const JsonValue& value) {
  const auto* flag = std::get_if<bool>(&value.data);
  const auto* text = std::get_if<std::string>(&value.data);
  const auto* whole = std::get_if<std::int64_t>(&value.data);
  const auto* real = std::get_if<double>(&value.data);
  return (flag != nullptr && !*flag) || (text != nullptr && text->empty()) ||
         (whole != nullptr && *whole == 0) || (real != nullptr && *real == 0);
}

Status read_model(const FieldReader& model, TokenizerSpec& spec) {
  TIDEKV_ASSIGN(const std::string type, model.string("type", "a string"));
  if (type != "BPE") {
    return model.error(ErrorCode::kUnsupported, "type", "\"BPE\"");
  }
  // Switches that change the result are refused unless they are off. fuse_unk never matters: where
  // there is an unknown token, every byte must have one of its own.
  for (const std::string_view name :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
    const JsonValue* value = model.find(name);
    if (value != nullptr && !is_off(*value)) {
      return model.error(ErrorCode::kUnsupported, name, "null, or this off");
    }
  }
  TIDEKV_ASSIGN(const bool byte_fallback, model.boolean_or("byte_fallback", false));
  spec.spelling = byte_fallback ? TokenSpelling::kSpaceMark : TokenSpelling::kByteAlphabet;
  spec.needs_all_bytes = model.find("unk_token") != nullptr;
  TIDEKV_ASSIGN(spec.ignore_merges, model.boolean_or("ignore_merges", false));
  return Ok{};
}

Status read_byte_level(const FieldReader& fields, TokenizerSpec& spec) {
  TIDEKV_TRY(fields.only({"type", "add_prefix_space", "trim_offsets", "use_regex"}));
  TIDEKV_ASSIGN(const bool prefix_space, fields.boolean("add_prefix_space"));
  TIDEKV_ASSIGN(const bool use_regex, fields.boolean_or("use_regex", true));
  if (prefix_space) {
    spec.pre_tokenizer.push_back({.kind = PreTokenizerStep::Kind::kPrefixSpace,
                                  .pattern = {},
                                  .field = place_of(fields, "add_prefix_space")});
  }
  if (use_regex) {
    spec.pre_tokenizer.push_back({.pattern = kGpt2Pattern, .field = place_of(fields, "use_regex")});
  }
  return Ok{};
}

Status read_digits(const FieldReader& fields, TokenizerSpec& spec) {
  TIDEKV_TRY(fields.only({"type", "individual_digits"}));
  TIDEKV_ASSIGN(const bool individual, fields.boolean("individual_digits"));
  spec.pre_tokenizer.push_back(
      {.pattern = individual ? "\\p{N}" : "\\p{N}+", .field = place_of(fields)});
  return Ok{};
}

Status read_split(const FieldReader& fields, TokenizerSpec& spec) {
  TIDEKV_TRY(fields.only({"type", "pattern", "behavior", "invert"}));
  PreTokenizerStep step{.pattern = {}, .field = place_of(fields, "pattern")};
  TIDEKV_ASSIGN(const std::string behavior, fields.string("behavior", "a string"));
  if (behavior != "Isolated" && behavior != "Removed") {
    return fields.error(ErrorCode::kUnsupported, "behavior", "\"Isolated\" or \"Removed\"");
  }
  step.behavior = behavior == "Isolated" ? SplitBehavior::kIsolated : SplitBehavior::kRemoved;
  TIDEKV_ASSIGN(step.invert, fields.boolean("invert"));
  TIDEKV_ASSIGN(const FieldReader forms, fields.required_object("pattern"));
  TIDEKV_TRY(forms.only({"Regex", "String"}));
  if (forms.members().size() != 1) {
    return Error{ErrorCode::kBadFile, step.field + " has " +
                                          std::to_string(forms.members().size()) +
                                          " fields; expected one: Regex or String"};
  }
  if (forms.find("Regex") != nullptr) {
    TIDEKV_ASSIGN(step.pattern, forms.string("Regex", "a string"));
  } else {
    TIDEKV_ASSIGN(const std::string literal, forms.string("String", "a string"));
    step.pattern = pattern_for_literal(literal);
  }
  spec.pre_tokenizer.push_back(std::move(step));
  return Ok{};
}

Status read_pre_tokenizer(const FieldReader& fields, TokenizerSpec& spec) {
  bool byte_level = false;
  const auto read = [&](const FieldReader& step, const std::string& type) -> Status {
    if (byte_level || spec.pre_tokenizer.size() >= kMaxSteps) {
      return Error{ErrorCode::kUnsupported, place_of(step) + ": expected at most " +
                                                std::to_string(kMaxSteps) +
                                                " steps, and none after ByteLevel"};
    }
    if (type == "Split") {
      return read_split(step, spec);
    }
    if (type == "Digits") {
      return read_digits(step, spec);
    }
    byte_level = type == "ByteLevel";
    return byte_level ? read_byte_level(step, spec)
                      : Status(unsupported_type(step, "Split, Digits or ByteLevel"));
  };
  TIDEKV_TRY(for_each_in_sequence(fields, "pretokenizers", read));
  if (!byte_level) {
    return Error{ErrorCode::kUnsupported, place_of(fields) +
                                              " does not end in ByteLevel; only byte-level BPE is "
                                              "supported"};
  }
  return Ok{};
}

Status read_decoder(const FieldReader& fields) {
  return for_each_in_sequence(
      fields, "decoders", [](const FieldReader& step, const std::string& type) -> Status {
        return type == "ByteLevel" ? Status(Ok{}) : Status(unsupported_type(step, "ByteLevel"));
      });
}

// The one id that special_tokens gives for `name`.
Result<std::int32_t> template_token_id(const FieldReader& fields, const std::string& name) {
  TIDEKV_ASSIGN(const FieldReader tokens, fields.required_object("special_tokens"));
  if (tokens.find(name) == nullptr) {
    return Error{ErrorCode::kBadFile, place_of(fields, "special_tokens") + " lacks " +
                                          quoted_text(name) + "; expected what \"single\" names"};
  }
  TIDEKV_ASSIGN(const FieldReader token, tokens.required_object(name));
  TIDEKV_TRY(token.only({"id", "ids", "tokens"}));
  TIDEKV_ASSIGN(const std::vector<std::int64_t> ids, token.integers("ids", kTokenIds));
  if (ids.size() != 1) {
    return token.error(ErrorCode::kUnsupported, "ids", "exactly one token id");
  }
  return static_cast<std::int32_t>(ids[0]);
}

// Accepts what puts at most one token, the BOS, before the text and none behind it.
Status read_template(const FieldReader& fields, TokenizerSpec& spec) {
  TIDEKV_TRY(fields.only({"type", "single", "pair", "special_tokens"}));
  TIDEKV_ASSIGN(const std::vector<FieldReader> single, fields.objects("single"));
  std::vector<std::string> before;
  bool text_seen = false;
  for (const FieldReader& piece : single) {
    TIDEKV_TRY(piece.only({"SpecialToken", "Sequence"}));
    const bool is_text = piece.find("Sequence") != nullptr;
    TIDEKV_ASSIGN(const FieldReader names,
                  piece.required_object(is_text ? "Sequence" : "SpecialToken"));
    TIDEKV_TRY(names.only({"id", "type_id"}));
    TIDEKV_ASSIGN(const std::string id, names.string("id", "a string"));
    if (text_seen || (is_text && id != "A")) {
      return Error{ErrorCode::kUnsupported, place_of(piece) + ": " + quoted_text(id) +
                                                " is not supported here; expected nothing behind "
                                                "the text, Sequence A"};
    }
    text_seen = is_text;
    if (!is_text) {
      before.push_back(id);
    }
  }
  if (!text_seen || before.size() > 1 || (!before.empty() && spec.bos_id >= 0)) {
    return Error{ErrorCode::kUnsupported, place_of(fields, "single") +
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
Status read_post_processor(const FieldReader& fields, TokenizerSpec& spec) {
  return for_each_in_sequence(
      fields, "processors", [&](const FieldReader& step, const std::string& type) -> Status {
        if (type == "TemplateProcessing") {
          return read_template(step, spec);
        }
        return type == "ByteLevel"
                   ? Status(Ok{})
                   : Status(unsupported_type(step, "TemplateProcessing or ByteLevel"));
      });
}

// Text stays as it is, or is composed first.
Status read_normalizer(const FieldReader& fields, TokenizerSpec& spec) {
  return for_each_in_sequence(
      fields, "normalizers", [&](const FieldReader& step, const std::string& type) -> Status {
        if (type != "NFC") {
          return unsupported_type(step, "NFC, or null in place of a normalizer");
        }
        spec.compose = true;
        return step.only({"type"});
      });
}

Status read_byte_level_sections(const FieldReader& root, TokenizerSpec& spec) {
  TIDEKV_ASSIGN(const std::optional<FieldReader> normalizer, root.object("normalizer"));
  if (normalizer) {
    TIDEKV_TRY(read_normalizer(*normalizer, spec));
  }
  for (const AddedToken& token : spec.added_tokens) {
    if (spec.compose && token.normalized) {
      return Error{ErrorCode::kUnsupported, root.where() +
                                                ": added_tokens: " + quoted_text(token.content) +
                                                " is searched for in normalised text; expected "
                                                "\"normalized\" to be false"};
    }
  }
  TIDEKV_ASSIGN(const FieldReader pre_tokenizer, root.required_object("pre_tokenizer"));
  TIDEKV_TRY(read_pre_tokenizer(pre_tokenizer, spec));
  TIDEKV_ASSIGN(const FieldReader decoder, root.required_object("decoder"));
  return read_decoder(decoder);
}

}  // namespace

// `truncation` and `padding` are the caller's business, as in Transformers, and not looked at.
Status read_sections(const FieldReader& root, TokenizerSpec& spec) {
  TIDEKV_ASSIGN(const FieldReader model, root.required_object("model"));
  TIDEKV_TRY(read_model(model, spec));
  if (root.find("version") != nullptr) {
    TIDEKV_ASSIGN(const std::string version, root.string("version", "\"1.0\""));
    if (version != "1.0") {
      return root.error(ErrorCode::kUnsupported, "version", "\"1.0\"");
    }
  }
  if (spec.spelling == TokenSpelling::kSpaceMark) {
    TIDEKV_TRY(read_space_mark_sections(root, spec));
  } else {
    TIDEKV_TRY(read_byte_level_sections(root, spec));
  }
  TIDEKV_ASSIGN(const std::optional<FieldReader> post_processor, root.object("post_processor"));
  return post_processor ? read_post_processor(*post_processor, spec) : Status(Ok{});
}

Result<AddedToken> read_added_token(const FieldReader& fields) {
  TIDEKV_TRY(
      fields.only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}));
  AddedToken token;
  TIDEKV_ASSIGN(const std::int64_t id, fields.integer("id", kTokenIds));
  token.id = static_cast<std::int32_t>(id);
  TIDEKV_ASSIGN(token.content, fields.string("content", "a string"));
  TIDEKV_ASSIGN(const bool single_word, fields.boolean("single_word"));
  if (single_word) {
    return fields.error(ErrorCode::kUnsupported, "single_word", "false");
  }
  TIDEKV_ASSIGN(token.lstrip, fields.boolean("lstrip"));
  TIDEKV_ASSIGN(token.rstrip, fields.boolean("rstrip"));
  TIDEKV_ASSIGN(token.normalized, fields.boolean("normalized"));
  TIDEKV_ASSIGN(token.special, fields.boolean("special"));
  return token;
}

}  // namespace tidekv
