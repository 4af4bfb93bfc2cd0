#include "text/space_mark_sections.h"

#include <string>

#include "text/section_reading.h"
#include "text/space_mark.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

// What the normalizer and the pre-tokeniser do together.
struct Spaces {
  bool replaced = false;   // by marks
  bool prepended = false;  // a mark, in front of every stretch
  bool doubled = false;    // a mark in front becomes two
  bool metaspace = false;
  SpacePrefix scheme = SpacePrefix::kNever;  // of Metaspace: where there is no mark in front
};

Status expect_text(const FieldReader& fields, std::string_view name, std::string_view expected) {
  TIDEKV_ASSIGN(const std::string text, fields.string(name, "a string"));
  if (text != expected) {
    return fields.error(ErrorCode::kUnsupported, name, quoted_text(expected));
  }
  return Ok{};
}

// Replaces each space by a mark, or a mark in front by two.
Status read_replace(const FieldReader& fields, Spaces& spaces) {
  TIDEKV_TRY(fields.only({"type", "pattern", "content"}));
  TIDEKV_ASSIGN(const FieldReader pattern, fields.required_object("pattern"));
  TIDEKV_TRY(pattern.only({"String", "Regex"}));
  if (pattern.find("Regex") != nullptr) {
    TIDEKV_TRY(expect_text(pattern, "Regex", "\\A\xE2\x96\x81"));
    spaces.doubled = true;
    return expect_text(fields, "content", "\xE2\x96\x81\xE2\x96\x81");
  }
  TIDEKV_TRY(expect_text(pattern, "String", " "));
  spaces.replaced = true;
  return expect_text(fields, "content", kSpaceMark);
}

Status read_normalizer(const FieldReader& fields, Spaces& spaces) {
  return for_each_in_sequence(fields, "normalizers",
                              [&](const FieldReader& step, const std::string& type) -> Status {
                                if (type == "Replace") {
                                  return read_replace(step, spaces);
                                }
                                if (type != "Prepend") {
                                  return unsupported_type(step, "Prepend or Replace");
                                }
                                TIDEKV_TRY(step.only({"type", "prepend"}));
                                spaces.prepended = true;
                                return expect_text(step, "prepend", kSpaceMark);
                              });
}

Status read_metaspace(const FieldReader& fields, Spaces& spaces) {
  TIDEKV_TRY(fields.only(
      {"type", "replacement", "str_rep", "add_prefix_space", "prepend_scheme", "split"}));
  TIDEKV_TRY(expect_text(fields, "replacement", kSpaceMark));
  TIDEKV_ASSIGN(const bool split, fields.boolean_or("split", true));
  if (split) {
    return fields.error(ErrorCode::kUnsupported, "split", "false");
  }
  spaces.metaspace = true;
  TIDEKV_ASSIGN(const std::string scheme,
                fields.string("prepend_scheme", R"("always", "first" or "never")"));
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    return fields.error(ErrorCode::kUnsupported, "prepend_scheme",
                        R"("always", "first" or "never")");
  }
  spaces.scheme = scheme == "always"  ? SpacePrefix::kEvery
                  : scheme == "first" ? SpacePrefix::kFirst
                                      : SpacePrefix::kNever;
  return Ok{};
}

Status read_pre_tokenizer(const FieldReader& fields, Spaces& spaces) {
  return for_each_in_sequence(
      fields, "pretokenizers", [&](const FieldReader& step, const std::string& type) -> Status {
        if (type != "Metaspace" || spaces.metaspace) {
          return unsupported_type(step, "Metaspace, once, or null in place of a pre-tokeniser");
        }
        return read_metaspace(step, spaces);
      });
}

// What these do is known: marks become spaces, byte tokens bytes.
Status read_decoder(const FieldReader& fields) {
  return for_each_in_sequence(
      fields, "decoders", [](const FieldReader& step, const std::string& type) -> Status {
        const bool known = type == "Replace" || type == "ByteFallback" || type == "Fuse" ||
                           type == "Strip" || type == "Metaspace";
        return known ? Status(Ok{})
                     : Status(unsupported_type(step,
                                               "Replace, ByteFallback, Fuse, Strip or Metaspace"));
      });
}

Status apply(const Spaces& spaces, const FieldReader& root, TokenizerSpec& spec) {
  // A mark that is doubled in front makes Metaspace add one whatever the text begins with.
  const bool doubling_makes_sense =
      !spaces.doubled || (spaces.scheme == SpacePrefix::kEvery && !spaces.prepended);
  const bool both = spaces.prepended && spaces.scheme != SpacePrefix::kNever;
  if ((!spaces.replaced && !spaces.metaspace) || both || !doubling_makes_sense) {
    return root.error(ErrorCode::kUnsupported, "normalizer",
                      "Replace of each space by U+2581, and one of Prepend and Metaspace");
  }
  spec.space_prefix = spaces.prepended ? SpacePrefix::kEvery : spaces.scheme;
  spec.prefix_unless_space = !spaces.prepended && !spaces.doubled;
  for (const AddedToken& token : spec.added_tokens) {
    if (token.normalized) {
      return Error{ErrorCode::kUnsupported, root.where() +
                                                ": added_tokens: " + quoted_text(token.content) +
                                                " is searched for in normalised text; expected "
                                                "\"normalized\" to be false"};
    }
  }
  return Ok{};
}

}  // namespace

Status read_space_mark_sections(const FieldReader& root, TokenizerSpec& spec) {
  Spaces spaces;
  TIDEKV_ASSIGN(const std::optional<FieldReader> normalizer, root.object("normalizer"));
  if (normalizer) {
    TIDEKV_TRY(read_normalizer(*normalizer, spaces));
  }
  TIDEKV_ASSIGN(const std::optional<FieldReader> pre_tokenizer, root.object("pre_tokenizer"));
  if (pre_tokenizer) {
    TIDEKV_TRY(read_pre_tokenizer(*pre_tokenizer, spaces));
  }
  TIDEKV_ASSIGN(const FieldReader decoder, root.required_object("decoder"));
  TIDEKV_TRY(read_decoder(decoder));
  return apply(spaces, root, spec);
}

}  // namespace tidekv
