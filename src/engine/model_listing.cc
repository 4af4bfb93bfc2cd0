#include "tidekv/model_listing.h"

#include <cstdio>
#include <functional>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/json_value.h"
#include "engine/values_not_exceptions.h"
#include "io/gguf.h"
#include "io/tensor_file.h"

namespace tidekv {
namespace {

constexpr std::size_t kShownBytes = 200;   // of a string
constexpr std::size_t kShownElements = 8;  // of an array
constexpr std::int64_t kMaxConfigBytes = 4 << 20;

std::string cut(std::string_view text) {
  return text.size() <= kShownBytes ? std::string(text)
                                    : std::string(text.substr(0, kShownBytes)) + "...";
}

std::string spelled(double number) {
  char digits[40];
  std::snprintf(digits, sizeof digits, "%.9g", number);
  return digits;
}

// Type and value of a scalar; of an array or object in JSON, what it is and how long.
FieldListing listing_of(const std::string& key, const JsonValue& value) {
  struct Visitor {
    std::pair<std::string, std::string> operator()(std::monostate /*null*/) const {
      return {"null", "null"};
    }
    std::pair<std::string, std::string> operator()(bool flag) const {
      return {"bool", flag ? "true" : "false"};
    }
    std::pair<std::string, std::string> operator()(std::int64_t number) const {
      return {"integer", std::to_string(number)};
    }
    std::pair<std::string, std::string> operator()(double number) const {
      return {"number", spelled(number)};
    }
    std::pair<std::string, std::string> operator()(const std::string& text) const {
      return {"string", cut(text)};
    }
    std::pair<std::string, std::string> operator()(const JsonArray& array) const {
      std::string shown;
      for (std::size_t i = 0; i < array.size() && i < kShownElements; ++i) {
        shown += (i == 0 ? "" : ", ") + listing_of("", array[i]).value;
      }
      return {"array", "[" + shown + (array.size() > kShownElements ? ", ...]" : "]")};
    }
    std::pair<std::string, std::string> operator()(const JsonObject& object) const {
      std::string shown;
      for (const JsonMember& member : object) {
        shown += (shown.empty() ? "" : ", ") + cut(member.key) + ": " +
                 listing_of("", member.value).value;
      }
      return {"object", "{" + cut(shown) + "}"};
    }
  };
  auto [type, shown] = std::visit(Visitor{}, value.data);
  return {key, std::move(type), std::move(shown)};
}

FieldListing listing_of(const std::string& key, const GgufArray& array) {
  std::vector<std::string> elements;
  if (array.type == GgufType::kString) {
    // The walk goes over all of them; a vocabulary has some hundred thousand.
    for_each_string(array, [&](std::string_view text) {
      if (elements.size() < kShownElements) {
        elements.push_back("'" + cut(text) + "'");
      }
    });
  } else {
    const std::size_t width = traits_of(array.type).num_bytes;
    for (std::uint64_t i = 0; i < array.count && i < kShownElements; ++i) {
      const JsonValue value = array.type == GgufType::kBool
                                  ? JsonValue{array.bytes[i] != std::byte{0}}
                                  : number_of(array.type, array.bytes.data() + i * width);
      elements.push_back(listing_of(key, value).value);
    }
  }
  std::string shown;
  for (const std::string& element : elements) {
    shown += (shown.empty() ? "" : ", ") + element;
  }
  const bool all = array.count <= elements.size();
  return {key, "array of " + std::string(name_of(array.type)),
          std::to_string(array.count) + ": [" + shown + (all ? "]" : ", ...]")};
}

std::vector<FieldListing> gguf_fields(const GgufMetadata& metadata) {
  std::vector<FieldListing> fields;
  for (const JsonMember& member : metadata.fields) {
    const GgufArray* array = metadata.array(member.key);
    fields.push_back(array == nullptr ? listing_of(member.key, member.value)
                                      : listing_of(member.key, *array));
  }
  return fields;
}

Result<std::vector<FieldListing>> config_fields(const std::string& folder) {
  const std::string file = join_path(folder, "config.json");
  std::vector<FieldListing> fields;
  if (!file_exists(file)) {
    return fields;
  }
  TIDEKV_ASSIGN(const std::string json, read_small_file(file, kMaxConfigBytes));
  TIDEKV_ASSIGN(const JsonObject object, parse_json_object(json, file, {}));
  for (const JsonMember& member : object) {
    fields.push_back(listing_of(member.key, member.value));
  }
  return fields;
}

void list_tensors(const std::map<std::string, TensorInfo, std::less<>>& tensors,
                  const std::map<std::string, std::string, std::less<>>& other_dtypes,
                  ModelListing& listing) {
  for (const auto& [name, info] : tensors) {
    listing.tensors.push_back({name, std::string(name_of(info.dtype)), info.shape, info.num_bytes});
  }
  for (const auto& [name, dtype] : other_dtypes) {
    listing.tensors.push_back({name, dtype, {}, 0});
  }
}

void list_gguf_fields(const GgufMetadata& metadata, ModelListing& listing) {
  listing.format = "GGUF " + std::to_string(metadata.version);
  listing.fields = gguf_fields(metadata);
}

void list_config(const std::string& folder, ModelListing& listing) {
  listing.format = "safetensors";
  Result<std::vector<FieldListing>> fields = config_fields(folder);
  if (fields.ok()) {
    listing.fields = std::move(fields).value();
  } else if (!listing.damage) {
    listing.damage = std::move(fields).error();
  }
}

// What stands before the damage of a GGUF file.
Status list_until_damage(const std::string& path, ModelListing& listing) {
  TIDEKV_ASSIGN(const MappedFile file, MappedFile::open(path));
  if (begins_like_gguf(file.bytes())) {
    GgufContents contents;
    static_cast<void>(parse_gguf_until_damage(file.bytes(), path, contents));
    list_gguf_fields(contents.metadata, listing);
    list_tensors(contents.tensors, contents.other_dtypes, listing);
  }
  return Ok{};
}

Result<ModelListing> list_damaged(const std::string& path, Error damage) {
  ModelListing listing;
  listing.path = path;
  listing.damage = damage;
  if (is_directory(path)) {
    list_config(path, listing);
  } else {
    static_cast<void>(list_until_damage(path, listing));
  }
  if (listing.fields.empty() && listing.tensors.empty()) {
    return damage;
  }
  return listing;
}

Result<ModelListing> list(const std::string& path) {
  Result<TensorFile> opened = TensorFile::open(path);
  if (!opened.ok()) {
    return list_damaged(path, std::move(opened).error());
  }
  const TensorFile file = std::move(opened).value();
  ModelListing listing;
  listing.path = path;
  if (const GgufMetadata* metadata = file.metadata()) {
    list_gguf_fields(*metadata, listing);
  } else {
    list_config(path, listing);
  }
  list_tensors(file.tensors(), file.other_dtypes(), listing);
  return listing;
}

}  // namespace

Result<ModelListing> list_model(const std::string& path) {
  return values_not_exceptions([&] { return list(path); });
}

}  // namespace tidekv
