#include "base/json_value.h"

#include <charconv>
#include <cstdio>
#include <optional>
#include <set>
#include <utility>

#include "base/json_events.h"

namespace tidekv {
namespace {

// Of the outermost object: more than any file here needs, and a bound on the keys remembered.
constexpr std::size_t kMaxMembers = std::size_t{1} << 17U;

// Hands over one member of the outermost object at a time.
class MemberReader final : public JsonHandler {
 public:
  MemberReader(const std::string& where, const JsonLimits& limits,
               const std::function<Status(JsonMember)>& on_member)
      : where_(where), on_member_(on_member), builder_(limits) {}

  Status scalar(JsonValue value) override {
    if (!inside_) {
      return not_an_object(value);
    }
    TIDEKV_TRY(builder_.scalar(std::move(value)));
    return deliver();
  }

  Status open(JsonValue container) override {
    if (in_member_) {
      return builder_.open(std::move(container));
    }
    if (!std::holds_alternative<JsonObject>(container.data)) {
      return not_an_object(container);
    }
    inside_ = true;
    return Ok{};
  }

  Status close() override {
    if (!in_member_) {
      return Ok{};
    }
    builder_.close();
    return deliver();
  }

  Status key(std::string_view name) override {
    if (in_member_) {
      return builder_.key(name);
    }
    if (!seen_.emplace(name).second) {
      return bad("key " + in_quotes(name) + " appears twice; expected each key once");
    }
    if (seen_.size() > kMaxMembers) {
      return bad("more than " + std::to_string(kMaxMembers) +
                 " keys in one object; expected at most that many");
    }
    key_ = name;
    in_member_ = true;
    builder_.start(where_, name, 1);
    return Ok{};
  }

  std::string where() const override { return where_; }

 private:
  Error bad(const std::string& what) const {
    return Error{ErrorCode::kBadFile, where_ + ": " + what};
  }
  Error not_an_object(const JsonValue& value) const {
    return bad("holds " + describe(value) + "; expected a JSON object");
  }

  Status deliver() {
    std::optional<JsonValue> value = builder_.take();
    if (!value) {
      return Ok{};
    }
    in_member_ = false;
    return on_member_({std::move(key_), *std::move(value)});
  }

  const std::string& where_;
  const std::function<Status(JsonMember)>& on_member_;
  JsonTreeBuilder builder_;
  std::set<std::string> seen_;
  std::string key_;
  bool inside_ = false;     // the outermost object
  bool in_member_ = false;  // a value of it is being built
};

// As short as reads back the same, and never like a whole number's.
std::string spelled(double number) {
  char digits[40];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, number, std::chars_format::general).ptr;
  const std::string out(digits, end);
  return out.find_first_not_of("-0123456789") == std::string::npos ? out + ".0" : out;
}

}  // namespace

Status for_each_json_member(std::string_view text, const std::string& where,
                            const JsonLimits& limits,
                            const std::function<Status(JsonMember)>& on_member) {
  MemberReader reader(where, limits, on_member);
  return read_json_events(text, reader);
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
    std::string operator()(double number) const { return "the number " + spelled(number); }
    std::string operator()(const std::string& text) const {
      return "the string " + in_quotes(text);
    }
    std::string operator()(const JsonArray& /*array*/) const { return "an array"; }
    std::string operator()(const JsonObject& /*object*/) const { return "an object"; }
  };
  return std::visit(Visitor{}, value.data);
}

}  // namespace tidekv
