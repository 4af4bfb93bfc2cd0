#include "text/tokenizer_json.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "text/json_fields.h"
#include "text/tokenizer_sections.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxFileBytes = std::size_t{256} << 20U;

// Where in the file the parser is.
enum class Place : std::uint8_t {
  kStart,
  kTop,          // the file's object
  kSection,      // any value of it that is collected as a tree
  kModel,        // the model's object
  kModelField,   // any value of it that is collected
  kVocab,        // token -> id
  kMerges,       // strings "a b", or pairs
  kPair,         // inside one pair
  kAddedTokens,  // the list
  kAddedToken,   // inside one of them, collected
  kEnd,
};

// Takes the parser's events. The three long lists go straight into the spec; the rest into a tree.
class TokenizerEvents final : public nlohmann::json_sax<json> {
 public:
  explicit TokenizerEvents(const std::string& file) : file_(file) {}

  bool null() override { return scalar(nullptr); }
  bool boolean(bool value) override { return scalar(value); }
  bool number_integer(number_integer_t value) override { return scalar(value); }
  bool number_unsigned(number_unsigned_t value) override { return scalar(value); }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return scalar(value);
  }
  bool string(string_t& value) override {
    if (place_ == Place::kMerges || place_ == Place::kPair) {
      return keep(place_ == Place::kPair ? add_part(value) : add_merge(value));
    }
    return scalar(value);
  }
  bool binary(binary_t& /*value*/) override { return fail("binary data; expected JSON text"); }
  bool start_object(std::size_t /*size*/) override { return open(json::object()); }
  bool start_array(std::size_t /*size*/) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override;
  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::detail::exception& error) override;

  Result<TokenizerSpec> finish(bool parsed);

 private:
  bool keep(Status status) {
    if (!status.ok()) {
      error_ = std::move(status).error();
    }
    return !error_.has_value();
  }
  bool fail(const std::string& message) {
    return keep(Error{ErrorCode::kBadFile, where() + ": " + message});
  }
  bool collecting() const {
    return place_ == Place::kSection || place_ == Place::kModelField ||
           place_ == Place::kAddedToken;
  }
  std::string where() const;
  bool scalar(json value);
  bool open(json value);
  bool close();
  bool collect(json value);
  bool collected();
  bool name_field(const std::string& name);
  bool add_token_id(const json& value);
  Status add_merge(std::string_view text);
  Status add_part(std::string_view text);

  const std::string& file_;
  std::optional<Error> error_;
  Place place_ = Place::kStart;
  JsonCollector collector_;
  json top_ = json::object();
  json model_ = json::object();
  std::string field_;  // of top_ or model_
  std::string token_;  // its id comes next
  bool has_vocab_ = false;
  bool has_merges_ = false;
  bool has_added_tokens_ = false;
  std::size_t parts_ = 0;  // of the open pair
  TokenizerSpec spec_;
};

std::string TokenizerEvents::where() const {
  switch (place_) {
    case Place::kStart:
    case Place::kEnd:
      return file_;
    case Place::kTop:
    case Place::kSection:
      return file_ + (field_.empty() ? "" : ": " + field_);
    case Place::kModel:
    case Place::kModelField:
      return file_ + ": model" + (field_.empty() ? "" : "." + field_);
    case Place::kVocab:
      return file_ + ": model.vocab";
    case Place::kMerges:
    case Place::kPair:
      return file_ + ": model.merges[" + std::to_string(spec_.merges.size() / 2) + "]";
    case Place::kAddedTokens:
    case Place::kAddedToken:
      return file_ + ": added_tokens[" + std::to_string(spec_.added_tokens.size()) + "]";
  }
  return file_;
}

bool TokenizerEvents::key(string_t& name) {
  if (place_ == Place::kVocab) {
    token_ = name;
    return true;
  }
  if (collecting()) {
    return keep(collector_.key(name));
  }
  return name_field(name);
}

// A field of the file's object or of the model's. Its name may be hostile: it is cut for errors.
bool TokenizerEvents::name_field(const std::string& name) {
  field_.clear();
  const json& object = place_ == Place::kTop ? top_ : model_;
  const bool twice = object.contains(name) ||
                     (place_ == Place::kTop && name == "added_tokens" && has_added_tokens_) ||
                     (place_ == Place::kModel && name == "vocab" && has_vocab_) ||
                     (place_ == Place::kModel && name == "merges" && has_merges_);
  if (twice) {
    return fail(quoted_text(name) + " is there twice; expected every field once");
  }
  constexpr std::size_t kMaxNameBytes = 64;
  if (name.size() > kMaxNameBytes) {
    return fail("field " + quoted_text(name) + " is not supported");
  }
  field_ = name;
  return true;
}

bool TokenizerEvents::scalar(json value) {
  switch (place_) {
    case Place::kVocab:
      return add_token_id(value);
    case Place::kStart:
      return fail("the file is " + shown(value) + "; expected an object");
    case Place::kMerges:
    case Place::kPair:
      return fail(shown(value) + "; expected \"a b\" or [\"a\", \"b\"]");
    case Place::kAddedTokens:
      return fail(shown(value) + "; expected an object");
    default:
      return collect(std::move(value));
  }
}

bool TokenizerEvents::open(json value) {
  const bool object = value.is_object();
  const auto enter = [&](Place place, bool want_object) {
    if (object != want_object) {
      return fail(shown(value) + (want_object ? "; expected an object" : "; expected an array"));
    }
    place_ = place;
    return true;
  };
  switch (place_) {
    case Place::kStart:
      return enter(Place::kTop, true);
    case Place::kTop:
      if (field_ == "model") {
        const bool entered = enter(Place::kModel, true);
        field_.clear();
        return entered;
      }
      if (field_ == "added_tokens") {
        has_added_tokens_ = true;
        return enter(Place::kAddedTokens, false);
      }
      return collect(std::move(value));
    case Place::kModel:
      if (field_ == "vocab") {
        has_vocab_ = true;
        return enter(Place::kVocab, true);
      }
      if (field_ == "merges") {
        has_merges_ = true;
        return enter(Place::kMerges, false);
      }
      return collect(std::move(value));
    case Place::kMerges:
      parts_ = 0;
      return enter(Place::kPair, false);
    case Place::kVocab:
    case Place::kPair:
      return scalar(std::move(value));  // where neither an array nor an object belongs
    default:
      return collect(std::move(value));
  }
}

bool TokenizerEvents::close() {
  switch (place_) {
    case Place::kTop:
      place_ = Place::kEnd;
      return true;
    case Place::kModel:
      top_["model"] = std::move(model_);
      place_ = Place::kTop;
      field_.clear();
      return true;
    case Place::kVocab:
    case Place::kMerges:
      place_ = Place::kModel;
      return true;
    case Place::kPair:
      if (parts_ != 2) {
        return fail("a pair of " + std::to_string(parts_) + "; expected two strings");
      }
      place_ = Place::kMerges;
      return true;
    case Place::kAddedTokens:
      place_ = Place::kTop;
      return true;
    default:
      collector_.close();
      return collected();
  }
}

// Adds one event to the tree of a small value, which starts here or is open.
bool TokenizerEvents::collect(json value) {
  if (!collecting()) {
    place_ = place_ == Place::kTop     ? Place::kSection
             : place_ == Place::kModel ? Place::kModelField
                                       : Place::kAddedToken;
    collector_.start(where());
  }
  return keep(collector_.add(std::move(value))) && collected();
}

// Puts the tree where it belongs once it is complete.
bool TokenizerEvents::collected() {
  if (!collector_.complete()) {
    return true;
  }
  json value = collector_.take();
  if (place_ == Place::kAddedToken) {
    Result<AddedToken> token = read_added_token(value, where());
    if (!token.ok()) {
      return keep(std::move(token).error());
    }
    spec_.added_tokens.push_back(std::move(token).value());
    place_ = Place::kAddedTokens;
    return true;
  }
  const bool in_model = place_ == Place::kModelField;
  (in_model ? model_ : top_)[field_] = std::move(value);
  place_ = in_model ? Place::kModel : Place::kTop;
  return true;
}

bool TokenizerEvents::add_token_id(const json& value) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > INT32_MAX) {
    return fail(quoted_text(token_) + " has id " + shown(value) +
                "; expected a whole number from 0 to 2147483647");
  }
  spec_.tokens.add(token_);
  spec_.token_ids.push_back(value.get<std::int32_t>());
  return true;
}

Status TokenizerEvents::add_merge(std::string_view text) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
    return Error{ErrorCode::kBadFile, where() + " is " + quoted_text(text) +
                                          "; expected two tokens with one space between"};
  }
  spec_.merges.add(text.substr(0, space));
  spec_.merges.add(text.substr(space + 1));
  return Ok{};
}

Status TokenizerEvents::add_part(std::string_view text) {
  if (++parts_ > 2) {
    return Error{ErrorCode::kBadFile,
                 where() + ": a third part " + quoted_text(text) + "; expected two strings"};
  }
  spec_.merges.add(text);
  return Ok{};
}

bool TokenizerEvents::parse_error(std::size_t position, const std::string& /*last_token*/,
                                  const nlohmann::detail::exception& error) {
  // The library's text without its prefix, and without the bytes it read last, which may be any.
  std::string_view why = error.what();
  why.remove_prefix(why.find(": ") == std::string_view::npos ? 0 : why.find(": ") + 2);
  why = why.substr(0, why.find("; last read"));
  return fail("not valid JSON at byte " + std::to_string(position) + ": " + std::string(why) +
              "; expected one complete JSON object");
}

Result<TokenizerSpec> TokenizerEvents::finish(bool parsed) {
  if (error_.has_value()) {
    return *std::move(error_);
  }
  if (!parsed || !top_.contains("model")) {
    return Error{ErrorCode::kBadFile,
                 file_ + ": model is missing; expected a byte-level BPE model"};
  }
  if (!top_["model"].is_object()) {
    return Error{ErrorCode::kBadFile,
                 file_ + ": model is " + shown(top_["model"]) + "; expected an object"};
  }
  for (const auto& [name, present] :
       {std::pair{"model.vocab", has_vocab_}, {"model.merges", has_merges_}}) {
    if (!present) {
      return Error{ErrorCode::kBadFile, file_ + ": " + name + " is missing; expected it for BPE"};
    }
  }
  TIDEKV_TRY(read_sections(top_, file_, spec_));
  return std::move(spec_);
}

}  // namespace

Result<TokenizerSpec> read_tokenizer_json(std::string_view text, const std::string& file) {
  if (text.size() > kMaxFileBytes) {
    return Error{ErrorCode::kBadFile, file + ": " + std::to_string(text.size()) +
                                          " bytes; expected at most " +
                                          std::to_string(kMaxFileBytes)};
  }
  TokenizerEvents events(file);
  const bool parsed = json::sax_parse(text.data(), text.data() + text.size(), &events);
  return events.finish(parsed);
}

}  // namespace tidekv
