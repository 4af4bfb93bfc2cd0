#include "io/shard_index.h"

#include <algorithm>
#include <optional>

#include "base/field_reader.h"
#include "base/json_value.h"

namespace tidekv {
namespace {

constexpr std::string_view kSuffix = ".safetensors";

bool is_plain_name(std::string_view name) {
  return name.size() > kSuffix.size() && name.size() <= 255 && name.ends_with(kSuffix) &&
         name.front() != '.' && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

Result<ShardIndex> parse_shard_index(std::string_view json, const std::string& file) {
  constexpr JsonLimits kLimits = {.max_depth = 8, .max_values = 1 << 18};
  TIDEKV_ASSIGN(const JsonObject root, parse_json_object(json, file, kLimits));
  const FieldReader fields(root, file);
  TIDEKV_ASSIGN(const std::optional<FieldReader> weight_map, fields.object("weight_map"));
  if (weight_map && weight_map->members().empty()) {
    return Error{ErrorCode::kBadFile,
                 file + ": field 'weight_map' is empty; expected the file of every tensor"};
  }
  if (!weight_map) {
    return fields.error(ErrorCode::kBadFile, "weight_map", "an object of tensor to file names");
  }
  ShardIndex index;
  for (const JsonMember& entry : weight_map->members()) {
    constexpr std::string_view kExpected =
        "the plain name of a .safetensors file in the same folder (letters, digits, '-', '_', '.')";
    // Not looked up by name again: an index may be large, and a look-up is linear.
    const auto* shard = std::get_if<std::string>(&entry.value.data);
    if (shard == nullptr || !is_plain_name(*shard)) {
      return weight_map->error(ErrorCode::kBadFile, entry.key, kExpected);
    }
    index.emplace(entry.key, *shard);
  }
  return index;
}

}  // namespace tidekv
