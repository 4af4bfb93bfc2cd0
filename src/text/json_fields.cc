#include "text/json_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "text/utf8.h"

namespace tidekv {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 32;
constexpr std::int64_t kMaxValues = 1 << 18;
constexpr std::int64_t kMaxTextBytes = 1 << 24;

}  // namespace

JsonCollector::JsonCollector() : root_(std::make_unique<json>()) {}
JsonCollector::JsonCollector(JsonCollector&&) noexcept = default;
JsonCollector& JsonCollector::operator=(JsonCollector&&) noexcept = default;
JsonCollector::~JsonCollector() = default;

void JsonCollector::start(std::string where) {
  where_ = std::move(where);
  *root_ = nullptr;
  open_.clear();
  num_values_ = 0;
  text_bytes_ = 0;
  has_root_ = false;
}

Status JsonCollector::key(const std::string& name) {
  text_bytes_ += static_cast<std::int64_t>(name.size());
  if (open_.back()->contains(name)) {
    return Error{ErrorCode::kBadFile,
                 where_ + ": " + quoted_text(name) + " is there twice; expected every field once"};
  }
  key_ = name;
  return Ok{};
}

json* JsonCollector::place(json value) {
  if (open_.empty()) {
    *root_ = std::move(value);
    has_root_ = true;
    return root_.get();
  }
  json& parent = *open_.back();
  if (parent.is_array()) {
    parent.push_back(std::move(value));
    return &parent.back();
  }
  json& child = parent[key_];
  child = std::move(value);
  return &child;
}

Status JsonCollector::add(json value) {
  ++num_values_;
  if (value.is_string()) {
    text_bytes_ += static_cast<std::int64_t>(value.get_ref<const std::string&>().size());
  }
  if (num_values_ > kMaxValues || text_bytes_ > kMaxTextBytes || open_.size() >= kMaxDepth) {
    return Error{ErrorCode::kBadFile, where_ + ": too large; expected at most " +
                                          std::to_string(kMaxValues) + " values, " +
                                          std::to_string(kMaxTextBytes) + " bytes of text and " +
                                          std::to_string(kMaxDepth) + " levels"};
  }
  const bool opens = value.is_structured();
  json* placed = place(std::move(value));
  if (opens) {
    open_.push_back(placed);
  }
  return Ok{};
}

void JsonCollector::close() { open_.pop_back(); }

bool JsonCollector::complete() const { return has_root_ && open_.empty(); }

json JsonCollector::take() { return std::exchange(*root_, nullptr); }

Result<JsonFields> JsonFields::of(const json& value, std::string where,
                                  std::initializer_list<std::string_view> known) {
  if (!value.is_object()) {
    return Error{ErrorCode::kBadFile, where + " is " + shown(value) + "; expected an object"};
  }
  for (const auto& item : value.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      std::string names;
      for (const std::string_view name : known) {
        names.append(names.empty() ? "" : ", ").append(name);
      }
      return Error{ErrorCode::kUnsupported, where + ": field " + quoted_text(item.key()) +
                                                " is not supported; expected only " + names};
    }
  }
  return JsonFields(value, std::move(where));
}

const json* JsonFields::find(std::string_view name) const {
  const auto found = value_->find(std::string(name));
  return found == value_->end() ? nullptr : &*found;
}

std::string JsonFields::path(std::string_view name) const {
  const bool at_top = where_.ends_with(": ");
  return where_ + (at_top ? "" : ".") + std::string(name);
}

Error JsonFields::wrong(std::string_view name, const std::string& expected) const {
  const json* value = find(name);
  return Error{ErrorCode::kBadFile, path(name) + " is " +
                                        (value == nullptr ? "missing" : shown(*value)) +
                                        "; expected " + expected};
}

Error JsonFields::unsupported(std::string_view name, const std::string& what) const {
  const json* value = find(name);
  return Error{ErrorCode::kUnsupported, path(name) + " is " +
                                            (value == nullptr ? "missing" : shown(*value)) +
                                            ", which is not supported; expected " + what};
}

Result<const json*> JsonFields::required(std::string_view name) const {
  const json* value = find(name);
  if (value == nullptr) {
    return wrong(name, "this field");
  }
  return value;
}

Result<std::string> JsonFields::text(std::string_view name) const {
  const json* value = find(name);
  if (value == nullptr || !value->is_string()) {
    return wrong(name, "a string");
  }
  return value->get<std::string>();
}

Result<bool> JsonFields::boolean(std::string_view name) const {
  const json* value = find(name);
  if (value == nullptr || !value->is_boolean()) {
    return wrong(name, "true or false");
  }
  return value->get<bool>();
}

Result<bool> JsonFields::boolean_or(std::string_view name, bool absent) const {
  return find(name) == nullptr ? Result<bool>(absent) : boolean(name);
}

Result<std::int64_t> JsonFields::integer(std::string_view name) const {
  const json* value = find(name);
  const bool fits = value != nullptr && value->is_number_integer() &&
                    !(value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX);
  if (!fits) {
    return wrong(name, "a whole number");
  }
  return value->get<std::int64_t>();
}

Result<const json*> JsonFields::array(std::string_view name) const {
  const json* value = find(name);
  if (value == nullptr || !value->is_array()) {
    return wrong(name, "an array");
  }
  return value;
}

std::string shown(const json& value) {
  if (value.is_string()) {
    return quoted_text(value.get_ref<const std::string&>());
  }
  if (value.is_array() || value.is_object()) {
    return value.is_array() ? "an array" : "an object";
  }
  return value.dump();
}

}  // namespace tidekv
