#include "io/json_value.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

namespace tidekv {
namespace {

using Sax = nlohmann::json_sax<nlohmann::json>;

Error bad_json(const std::string& where, const std::string& what) {
  return Error{ErrorCode::kBadFile, where + ": " + what};
}

// Builds one member of the outermost object at a time. nlohmann's parser itself does not recurse;
// every event here may end it by returning false, after setting error_.
class MemberReader final : public Sax {
 public:
  MemberReader(std::string_view text, const std::string& where, const JsonLimits& limits,
               const std::function<Status(JsonMember)>& on_member)
      : text_(text), where_(where), limits_(limits), on_member_(on_member) {}

  Status take_status() { return error_ ? Status(std::move(*error_)) : Status(Ok{}); }

  bool null() override { return add(JsonValue{}); }
  bool boolean(bool value) override { return add(JsonValue{value}); }
  bool number_integer(std::int64_t value) override { return add(JsonValue{value}); }
  bool number_unsigned(std::uint64_t value) override {
    return std::in_range<std::int64_t>(value) ? add(JsonValue{static_cast<std::int64_t>(value)})
                                              : add(JsonValue{static_cast<double>(value)});
  }
  bool number_float(double value, const std::string& /*spelling*/) override {
    return add(JsonValue{value});
  }
  bool string(std::string& value) override { return add(JsonValue{std::move(value)}); }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return fail("binary data in JSON"); }

  bool start_object(std::size_t /*size*/) override { return open(JsonValue{JsonObject{}}); }
  bool start_array(std::size_t /*size*/) override { return open(JsonValue{JsonArray{}}); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    last_key_ = name;
    open_.back().key = name;
    if (!open_.back().seen.insert(std::move(name)).second) {
      return fail("key " + in_quotes(last_key_) + " appears twice; each key may appear once");
    }
    return true;
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
  struct Open {
    JsonValue container;
    std::string key;             // whose value comes next, in an object
    std::set<std::string> seen;  // ordered: hostile names cannot make it slow, as hashing could
  };

  bool fail(const std::string& what) {
    error_ = bad_json(where_, what);
    return false;
  }

  bool count_value() {
    if (++num_values_ > limits_.max_values) {
      return fail("key " + in_quotes(last_key_) + " holds more than " +
                  std::to_string(limits_.max_values) + " values");
    }
    return true;
  }

  bool open(JsonValue container) {
    if (open_.empty() && !std::holds_alternative<JsonObject>(container.data)) {
      return fail("holds an array; expected a JSON object");
    }
    if (std::cmp_greater_equal(open_.size(), limits_.max_depth)) {
      return fail("nested deeper than " + std::to_string(limits_.max_depth) +
                  " levels, after key " + in_quotes(last_key_));
    }
    const bool outermost = open_.empty();
    open_.push_back({std::move(container), {}, {}});
    return outermost || count_value();
  }

  bool close() {
    JsonValue done = std::move(open_.back().container);
    open_.pop_back();
    return open_.empty() || place(std::move(done));
  }

  bool add(JsonValue value) {
    if (open_.empty()) {
      return fail("holds " + describe(value) + "; expected a JSON object");
    }
    return count_value() && place(std::move(value));
  }

  bool place(JsonValue value) {
    Open& parent = open_.back();
    if (open_.size() == 1) {
      return deliver({std::move(parent.key), std::move(value)});
    }
    if (auto* array = std::get_if<JsonArray>(&parent.container.data)) {
      array->push_back(std::move(value));
    } else {
      std::get<JsonObject>(parent.container.data)
          .push_back({std::move(parent.key), std::move(value)});
    }
    return true;
  }

  bool deliver(JsonMember member) {
    num_values_ = 0;
    Status status = on_member_(std::move(member));
    if (!status.ok()) {
      error_ = std::move(status).error();
      return false;
    }
    return true;
  }

  std::string_view text_;
  const std::string& where_;
  JsonLimits limits_;
  const std::function<Status(JsonMember)>& on_member_;
  std::vector<Open> open_;
  std::string last_key_;
  std::int64_t num_values_ = 0;
  std::optional<Error> error_;
};

}  // namespace

Status for_each_json_member(std::string_view text, const std::string& where,
                            const JsonLimits& limits,
                            const std::function<Status(JsonMember)>& on_member) {
  // The parser takes a zero byte for the end of its input and would ignore what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return bad_json(where, "not valid JSON: byte " + std::to_string(zero) + " is zero");
  }
  MemberReader reader(text, where, limits, on_member);
  const bool parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  TIDEKV_TRY(reader.take_status());
  if (!parsed) {
    return bad_json(where, "not valid JSON; expected one complete JSON object");
  }
  return Ok{};
}

Result<JsonObject> parse_json_object(std::string_view text, const std::string& where,
                                     const JsonLimits& limits) {
  JsonObject object;
  TIDEKV_TRY(for_each_json_member(text, where, limits, [&](JsonMember member) -> Status {
    object.push_back(std::move(member));
    return Ok{};
  }));
  return object;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMaxBytes = 80;
  std::string out = "'";
  for (const char c : text.substr(0, kMaxBytes)) {
    if (c >= 0x20 && c < 0x7F) {
      out += c;
    } else {
      char hex[8];
      std::snprintf(hex, sizeof hex, "\\x%02X",
                    static_cast<unsigned>(static_cast<unsigned char>(c)));
      out += hex;
    }
  }
  return out + (text.size() > kMaxBytes ? "...'" : "'");
}

std::string describe(const JsonValue& value) {
  struct Visitor {
    std::string operator()(std::monostate /*null*/) const { return "null"; }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::int64_t number) const {
      return "the number " + std::to_string(number);
    }
    std::string operator()(double number) const {
      char digits[40];
      std::snprintf(digits, sizeof digits, "%.17g", number);
      return std::string("the number ") + digits;
    }
    std::string operator()(const std::string& text) const {
      return "the string " + in_quotes(text);
    }
    std::string operator()(const JsonArray& /*array*/) const { return "an array"; }
    std::string operator()(const JsonObject& /*object*/) const { return "an object"; }
  };
  return std::visit(Visitor{}, value.data);
}

}  // namespace tidekv
