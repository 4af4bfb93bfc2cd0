#include "base/json_events.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

namespace tidekv {
namespace {

static_assert(std::is_nothrow_move_constructible_v<JsonValue>, "growing an array would copy trees");

// nlohmann's parser does not recurse and keeps no tree; every event here may end it by returning
// false, after setting error_. Its own tree type is never used: destroying one allocates memory.
class ParserEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  ParserEvents(std::string_view text, JsonHandler& handler) : text_(text), handler_(handler) {}

  Status take_status() { return error_ ? Status(*std::move(error_)) : Status(Ok{}); }

  bool null() override { return keep(handler_.scalar(JsonValue{})); }
  bool boolean(bool value) override { return keep(handler_.scalar(JsonValue{value})); }
  bool number_integer(std::int64_t value) override {
    return keep(handler_.scalar(JsonValue{value}));
  }
  bool number_unsigned(std::uint64_t value) override {
    return std::in_range<std::int64_t>(value) ? number_integer(static_cast<std::int64_t>(value))
                                              : number_float(static_cast<double>(value), {});
  }
  bool number_float(double value, const std::string& /*spelling*/) override {
    return keep(handler_.scalar(JsonValue{value}));
  }
  bool string(std::string& value) override {
    return keep(handler_.scalar(JsonValue{std::move(value)}));
  }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return fail("binary data in JSON"); }

  bool start_object(std::size_t /*size*/) override {
    return keep(handler_.open(JsonValue{JsonObject{}}));
  }
  bool start_array(std::size_t /*size*/) override {
    return keep(handler_.open(JsonValue{JsonArray{}}));
  }
  bool end_object() override { return keep(handler_.close()); }
  bool end_array() override { return keep(handler_.close()); }

  bool key(std::string& name) override {
    last_key_ = name;
    return keep(handler_.key(name));
  }

  bool parse_error(std::size_t position, const std::string& last_token,
                   const nlohmann::json::exception& /*unused*/) override {
    const bool at_end = position > text_.size();  // the end was read as a token
    std::string what = "not valid JSON at byte " + std::to_string(std::min(position, text_.size()));
    what += at_end ? ": the text ends early" : ", reading " + in_quotes(last_token);
    if (!last_key_.empty()) {
      what += ", after key " + in_quotes(last_key_);
    }
    return fail(what + "; expected one complete JSON object");
  }

 private:
  bool keep(Status status) {
    if (!status.ok()) {
      error_ = std::move(status).error();
    }
    return !error_.has_value();
  }
  bool fail(const std::string& what) {
    return keep(Error{ErrorCode::kBadFile, handler_.where() + ": " + what});
  }

  std::string_view text_;
  JsonHandler& handler_;
  std::string last_key_;
  std::optional<Error> error_;
};

// Of one string, number or stretch of white space. The parser holds what it is reading several
// times over; no file here needs one as long.
constexpr std::size_t kMaxTokenBytes = std::size_t{4} << 20U;

// Where a longer one begins; npos: nowhere.
std::size_t find_overlong_token(std::string_view text) {
  constexpr std::string_view kBetween = ",:[]{}";
  if (text.size() <= kMaxTokenBytes) {
    return std::string_view::npos;
  }
  bool in_string = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i - begin > kMaxTokenBytes) {
      return begin;
    }
    const char c = text[i];
    if (c == '"') {
      begin = in_string ? i + 1 : i;
      in_string = !in_string;
    } else if (in_string && c == '\\') {
      ++i;  // what is escaped ends nothing
    } else if (!in_string && kBetween.find(c) != std::string_view::npos) {
      begin = i + 1;
    }
  }
  return std::string_view::npos;
}

}  // namespace

Status read_json_events(std::string_view text, JsonHandler& handler) {
  // The parser takes a zero byte for the end of its input and would ignore what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return Error{ErrorCode::kBadFile, handler.where() + ": not valid JSON: byte " +
                                          std::to_string(zero) + " is zero; expected text"};
  }
  if (const std::size_t at = find_overlong_token(text); at != std::string_view::npos) {
    return Error{ErrorCode::kBadFile, handler.where() + ": at byte " + std::to_string(at) +
                                          ": a string, number or white space of more than " +
                                          std::to_string(kMaxTokenBytes) +
                                          " bytes; expected none as long"};
  }
  ParserEvents events(text, handler);
  const bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &events);
  TIDEKV_TRY(events.take_status());
  if (!parsed) {
    return Error{ErrorCode::kBadFile,
                 handler.where() + ": not valid JSON; expected one complete JSON object"};
  }
  return Ok{};
}

void JsonTreeBuilder::start(std::string where, std::string_view key, std::int64_t depth) {
  where_ = std::move(where);
  depth_ = depth;
  open_.clear();
  complete_.reset();
  last_key_ = key;
  num_values_ = 0;
}

Error JsonTreeBuilder::bad(const std::string& what) const {
  return Error{ErrorCode::kBadFile, where_ + ": " + what};
}

Status JsonTreeBuilder::count_value() {
  if (++num_values_ > limits_.max_values) {
    return bad("key " + in_quotes(last_key_) + " holds more than " +
               std::to_string(limits_.max_values) + " values; expected at most that many");
  }
  return Ok{};
}

Status JsonTreeBuilder::key(std::string_view name) {
  last_key_ = name;
  open_.back().key = name;
  if (!open_.back().seen.emplace(name).second) {
    return bad("key " + in_quotes(name) + " appears twice; expected each key once");
  }
  return Ok{};
}

Status JsonTreeBuilder::scalar(JsonValue value) {
  TIDEKV_TRY(count_value());
  place(std::move(value));
  return Ok{};
}

Status JsonTreeBuilder::open(JsonValue container) {
  if (depth_ + static_cast<std::int64_t>(open_.size()) >= limits_.max_depth) {
    return bad("nested deeper than " + std::to_string(limits_.max_depth) + " levels, after key " +
               in_quotes(last_key_) + "; expected at most that many");
  }
  TIDEKV_TRY(count_value());
  open_.push_back({std::move(container), {}, {}});
  return Ok{};
}

void JsonTreeBuilder::close() {
  JsonValue done = std::move(open_.back().container);
  open_.pop_back();
  place(std::move(done));
}

void JsonTreeBuilder::place(JsonValue value) {
  if (open_.empty()) {
    complete_ = std::move(value);
    return;
  }
  Open& parent = open_.back();
  if (auto* array = std::get_if<JsonArray>(&parent.container.data)) {
    array->push_back(std::move(value));
  } else {
    std::get<JsonObject>(parent.container.data)
        .push_back({std::move(parent.key), std::move(value)});
  }
}

std::optional<JsonValue> JsonTreeBuilder::take() { return std::exchange(complete_, std::nullopt); }

}  // namespace tidekv
