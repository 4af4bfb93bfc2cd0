#include "text/tokenizer_json.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/field_reader.h"
#include "base/json_events.h"
#include "base/json_value.h"
#include "text/tokenizer_sections.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20U;
constexpr JsonLimits kLimits = {.max_depth = 32, .max_values = 1 << 18};

constexpr std::string_view kTopFields[] = {"version",    "truncation",    "padding",
                                           "normalizer", "pre_tokenizer", "post_processor",
                                           "decoder",    "model",         "added_tokens"};
constexpr std::string_view kModelFields[] = {"type",
                                             "dropout",
                                             "unk_token",
                                             "continuing_subword_prefix",
                                             "end_of_word_suffix",
                                             "fuse_unk",
                                             "byte_fallback",
                                             "ignore_merges",
                                             "vocab",
                                             "merges"};

// Where in the file the parser is.
enum class Place : std::uint8_t {
  kStart,
  kTop,          // the file's object
  kSection,      // any value of it that is built as a tree
  kModel,        // the model's object
  kModelField,   // any value of it that is built as a tree
  kVocab,        // token -> id
  kMerges,       // strings "a b", or pairs
  kPair,         // inside one pair
  kAddedTokens,  // the list
  kAddedToken,   // inside one of them, built as a tree
  kEnd,
};

// The fields of one object that were there.
class SeenFields {
 public:
  // Notes `name`, which must be one of `known` and new; gives that one.
  template <std::size_t n>
  Result<std::string_view> add(std::string_view name, const std::string_view (&known)[n],
                               const std::string& where);
  bool has(std::string_view name) const {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  }

 private:
  std::vector<std::string_view> names_;
};

template <std::size_t n>
Result<std::string_view> SeenFields::add(std::string_view name, const std::string_view (&known)[n],
                                         const std::string& where) {
  const auto* found = std::find(std::begin(known), std::end(known), name);
  if (found == std::end(known)) {
    std::string names;
    for (const std::string_view each : known) {
      names.append(names.empty() ? "" : ", ").append(each);
    }
    return Error{ErrorCode::kUnsupported, where + ": field " + in_quotes(name) +
                                              " is not supported; expected only " + names};
  }
  if (has(name)) {
    return Error{ErrorCode::kBadFile,
                 where + ": key " + in_quotes(name) + " appears twice; expected each key once"};
  }
  names_.push_back(*found);
  return *found;
}

// The three long lists go straight into the spec; the rest into small trees.
class TokenizerHandler final : public JsonHandler {
 public:
  explicit TokenizerHandler(const std::string& file) : file_(file) {}

  Status scalar(JsonValue value) override;
  Status open(JsonValue container) override;
  Status close() override;
  Status key(std::string_view name) override;
  std::string where() const override {
    const std::string in = path();
    return in.empty() ? file_ : file_ + ": " + in;
  }

  Result<TokenizerSpec> finish();

 private:
  std::string path() const;
  Error bad(const std::string& message) const {
    return Error{ErrorCode::kBadFile, where() + message};
  }
  Error wrong(const JsonValue& value, const std::string& expected) const {
    return bad(" is " + describe(value) + "; expected " + expected);
  }
  // An array is what a merge may be, but not what stands in its pair.
  Error wrong_merge(const JsonValue& value) const {
    if (place_ == Place::kMerges) {
      return wrong(value, R"("a b" or ["a", "b"])");
    }
    return bad(" holds " + describe(value) + "; expected two strings");
  }
  bool building() const {
    return place_ == Place::kSection || place_ == Place::kModelField ||
           place_ == Place::kAddedToken;
  }
  Status name_field(std::string_view name);
  void start_tree(Place place, std::string_view name, std::int64_t depth);
  Status place_tree();
  Status add_token_id(const JsonValue& value);
  Status add_merge(std::string_view text);
  Status add_part(std::string_view text);

  const std::string& file_;
  Place place_ = Place::kStart;
  JsonTreeBuilder builder_{kLimits};
  JsonObject top_;    // without added_tokens
  JsonObject model_;  // without vocab and merges
  SeenFields seen_in_top_;
  SeenFields seen_in_model_;
  std::string_view field_;  // of the file's or the model's object; its value comes next
  std::string token_;       // its id comes next
  std::size_t parts_ = 0;   // of the open pair
  TokenizerSpec spec_;
};

std::string TokenizerHandler::path() const {
  switch (place_) {
    case Place::kStart:
    case Place::kEnd:
      return "";
    case Place::kTop:
    case Place::kSection:
      return std::string(field_);
    case Place::kModel:
    case Place::kModelField:
      return (field_.empty() ? "model" : "model.") + std::string(field_);
    case Place::kVocab:
      return "model.vocab";
    case Place::kMerges:
      return "model.merges[" + std::to_string(spec_.merges.size() / 2) + "]";
    case Place::kPair:  // of which up to two parts are already in the list
      return "model.merges[" +
             std::to_string((spec_.merges.size() - std::min<std::size_t>(parts_, 2)) / 2) + "]";
    case Place::kAddedTokens:
    case Place::kAddedToken:
      return "added_tokens[" + std::to_string(spec_.added_tokens.size()) + "]";
  }
  return "";
}

Status TokenizerHandler::key(std::string_view name) {
  if (place_ == Place::kVocab) {
    token_ = name;
    return Ok{};
  }
  return building() ? builder_.key(name) : name_field(name);
}

// The value is entered by the event that follows, or built as a tree.
Status TokenizerHandler::name_field(std::string_view name) {
  field_ = {};
  if (place_ == Place::kTop) {
    TIDEKV_ASSIGN(field_, seen_in_top_.add(name, kTopFields, where()));
    if (field_ != "model" && field_ != "added_tokens") {
      start_tree(Place::kSection, field_, 1);
    }
    return Ok{};
  }
  TIDEKV_ASSIGN(field_, seen_in_model_.add(name, kModelFields, where()));
  if (field_ != "vocab" && field_ != "merges") {
    start_tree(Place::kModelField, field_, 2);
  }
  return Ok{};
}

// `depth`: containers around the tree.
void TokenizerHandler::start_tree(Place place, std::string_view name, std::int64_t depth) {
  place_ = place;
  builder_.start(place == Place::kAddedToken ? where() : file_, name, depth);
}

Status TokenizerHandler::scalar(JsonValue value) {
  const auto* text = std::get_if<std::string>(&value.data);
  switch (place_) {
    case Place::kStart:
    case Place::kEnd:
      return bad(": holds " + describe(value) + "; expected a JSON object");
    case Place::kTop:
      return wrong(value, field_ == "model" ? "an object" : "an array");
    case Place::kModel:
      return wrong(value, field_ == "vocab" ? "an object" : "an array");
    case Place::kVocab:
      return add_token_id(value);
    case Place::kMerges:
    case Place::kPair:
      if (text == nullptr) {
        return wrong_merge(value);
      }
      return place_ == Place::kMerges ? add_merge(*text) : add_part(*text);
    case Place::kAddedTokens:
      return wrong(value, "an object");
    case Place::kSection:
    case Place::kModelField:
    case Place::kAddedToken:
      TIDEKV_TRY(builder_.scalar(std::move(value)));
      return place_tree();
  }
  return Ok{};
}

Status TokenizerHandler::open(JsonValue container) {
  const bool is_object = std::holds_alternative<JsonObject>(container.data);
  const auto enter = [&](Place place, bool want_object) -> Status {
    if (is_object != want_object) {
      return scalar(std::move(container));  // says what belongs here
    }
    place_ = place;
    return Ok{};
  };
  switch (place_) {
    case Place::kStart:
      return enter(Place::kTop, true);
    case Place::kTop:
      return field_ == "model" ? enter(Place::kModel, true) : enter(Place::kAddedTokens, false);
    case Place::kModel:
      return field_ == "vocab" ? enter(Place::kVocab, true) : enter(Place::kMerges, false);
    case Place::kMerges:
      parts_ = 0;
      return enter(Place::kPair, false);
    case Place::kAddedTokens:
      if (is_object) {
        start_tree(Place::kAddedToken, "added_tokens", 2);
      }
      break;
    default:
      break;
  }
  return building() ? builder_.open(std::move(container)) : scalar(std::move(container));
}

Status TokenizerHandler::close() {
  switch (place_) {
    case Place::kTop:
      place_ = Place::kEnd;
      return Ok{};
    case Place::kModel:
      top_.push_back({"model", JsonValue{std::move(model_)}});
      [[fallthrough]];
    case Place::kAddedTokens:
      place_ = Place::kTop;
      field_ = {};
      return Ok{};
    case Place::kVocab:
    case Place::kMerges:
      place_ = Place::kModel;
      field_ = {};
      return Ok{};
    case Place::kPair:
      if (parts_ != 2) {
        return bad(": a pair of " + std::to_string(parts_) + "; expected two strings");
      }
      place_ = Place::kMerges;
      return Ok{};
    default:
      builder_.close();
      return place_tree();
  }
}

// Puts the tree where it belongs once it is complete.
Status TokenizerHandler::place_tree() {
  std::optional<JsonValue> value = builder_.take();
  if (!value) {
    return Ok{};
  }
  if (place_ == Place::kAddedToken) {
    const auto& object = std::get<JsonObject>(value->data);
    TIDEKV_ASSIGN(AddedToken token, read_added_token(FieldReader(object, file_, path() + ".")));
    spec_.added_tokens.push_back(std::move(token));
    place_ = Place::kAddedTokens;
    return Ok{};
  }
  const bool in_model = place_ == Place::kModelField;
  (in_model ? model_ : top_).push_back({std::string(field_), *std::move(value)});
  place_ = in_model ? Place::kModel : Place::kTop;
  field_ = {};
  return Ok{};
}

Status TokenizerHandler::add_token_id(const JsonValue& value) {
  const auto* id = std::get_if<std::int64_t>(&value.data);
  if (id == nullptr || *id < 0 || *id > INT32_MAX) {
    return bad(": the id of " + quoted_text(token_) + " is " + describe(value) +
               "; expected a whole number from 0 to 2147483647");
  }
  spec_.tokens.add(token_);
  spec_.token_ids.push_back(static_cast<std::int32_t>(*id));
  return Ok{};
}

Status TokenizerHandler::add_merge(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
    return bad(" is " + quoted_text(text) + "; expected two tokens with one space between");
  }
  spec_.merges.add(text.substr(0, space));
  spec_.merges.add(text.substr(space + 1));
  return Ok{};
}

Status TokenizerHandler::add_part(std::string_view text) {
  if (++parts_ > 2) {
    return bad(": a third part " + quoted_text(text) + "; expected two strings");
  }
  spec_.merges.add(text);
  return Ok{};
}

Result<TokenizerSpec> TokenizerHandler::finish() {
  const FieldReader root(top_, file_);
  TIDEKV_TRY(read_sections(root, spec_));
  TIDEKV_ASSIGN(const FieldReader model, root.required_object("model"));
  for (const char* list : {"vocab", "merges"}) {
    if (!seen_in_model_.has(list)) {
      return model.error(ErrorCode::kBadFile, list, "it for BPE");
    }
  }
  return std::move(spec_);
}

}  // namespace

Result<TokenizerSpec> read_tokenizer_json(std::string_view text, const std::string& file) {
  if (text.size() > kMaxFileBytes) {
    return Error{ErrorCode::kBadFile, file + ": " + std::to_string(text.size()) +
                                          " bytes; expected at most " +
                                          std::to_string(kMaxFileBytes)};
  }
  TokenizerHandler handler(file);
  TIDEKV_TRY(read_json_events(text, handler));
  return handler.finish();
}

}  // namespace tidekv
