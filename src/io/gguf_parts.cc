#include "io/gguf_parts.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

namespace tidekv {
namespace {

constexpr std::string_view kSuffix = ".gguf";
constexpr std::size_t kNumberLen = 5;  // digits
constexpr std::int64_t kMaxParts = 65535;

// "folder/name-00002-of-00003.gguf": stem "folder/name", number 2, count 3.
struct PartName {
  std::string stem;
  std::int64_t number = 0;
  std::int64_t count = 0;
};

std::string spelled(const PartName& part) {
  char numbers[64];
  std::snprintf(numbers, sizeof numbers, "-%05lld-of-%05lld", static_cast<long long>(part.number),
                static_cast<long long>(part.count));
  return part.stem + numbers + std::string(kSuffix);
}

// Takes "<before>NNNNN" from the end of `text`.
std::optional<std::int64_t> take_number(std::string_view& text, std::string_view before) {
  if (text.size() < before.size() + kNumberLen) {
    return std::nullopt;
  }
  const std::string_view digits = text.substr(text.size() - kNumberLen);
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + kNumberLen, number);
  if (fault != std::errc() || end != digits.data() + kNumberLen || number < 1) {
    return std::nullopt;
  }
  text.remove_suffix(kNumberLen);
  if (!text.ends_with(before)) {
    return std::nullopt;
  }
  text.remove_suffix(before.size());
  return number;
}

std::optional<PartName> part_name(std::string_view path) {
  if (!path.ends_with(kSuffix)) {
    return std::nullopt;
  }
  path.remove_suffix(kSuffix.size());
  const auto count = take_number(path, "-of-");
  const auto number = count ? take_number(path, "-") : std::nullopt;
  if (!number || *number > *count) {
    return std::nullopt;
  }
  return PartName{std::string(path), *number, *count};
}

// Ok if a file's own fields agree with its name.
Status check_part(const GgufMetadata& metadata, const PartName& name) {
  const FieldReader fields = metadata.reader();
  TIDEKV_ASSIGN(const std::int64_t count, fields.integer("split.count", {1, kMaxParts}));
  if (count != name.count) {
    return fields.error(ErrorCode::kBadFile, "split.count",
                        std::to_string(name.count) + ", as in the file's name");
  }
  TIDEKV_ASSIGN(const std::int64_t number, fields.integer("split.no", {0, kMaxParts}));
  if (number != name.number - 1) {
    return fields.error(ErrorCode::kBadFile, "split.no",
                        std::to_string(name.number - 1) + ", one less than in the file's name");
  }
  return Ok{};
}

// Fields of the first part by name: a look-up in the list itself is linear.
using FieldIndex = std::map<std::string_view, const JsonValue*>;

FieldIndex index_of(const GgufMetadata& metadata) {
  FieldIndex index;
  for (const JsonMember& member : metadata.fields) {
    index.emplace(member.key, &member.value);
  }
  return index;
}

// Whether a field says what the model is, and not only what the file is called or made by.
bool is_of_the_model(std::string_view key) {
  return key == "general.architecture" ||
         !(key.starts_with("general.") || key.starts_with("split."));
}

bool same_scalar(const JsonValue& a, const JsonValue& b) {
  return std::visit(
      [&](const auto& value) {
        using Value = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<Value, JsonArray> || std::is_same_v<Value, JsonObject> ||
                      std::is_same_v<Value, std::monostate>) {
          return false;
        } else {
          const auto* other = std::get_if<Value>(&b.data);
          return other != nullptr && *other == value;
        }
      },
      a.data);
}

bool same_array(const GgufArray* a, const GgufArray* b) {
  return a != nullptr && b != nullptr && a->type == b->type && a->count == b->count &&
         std::ranges::equal(a->bytes, b->bytes);
}

// Later parts usually say nothing of the model. One that does must say what the first part says:
// else it is of another model, and the two would run as one.
Status check_same_model(const GgufMetadata& first, const FieldIndex& known,
                        const GgufMetadata& part) {
  for (const JsonMember& member : part.fields) {
    if (!is_of_the_model(member.key)) {
      continue;
    }
    const auto it = known.find(member.key);
    if (it == known.end()) {
      return part.reader().error(ErrorCode::kBadFile, member.key,
                                 "no such field, as in the first part: all parts of one model");
    }
    if (!same_scalar(member.value, *it->second) &&
        !same_array(part.array(member.key), first.array(member.key))) {
      return part.reader().error(
          ErrorCode::kBadFile, member.key,
          describe(*it->second) + ", as in the first part: all parts of one model");
    }
  }
  return Ok{};
}

// Moves a part's tensors to those of the parts before it.
Status merge(GgufContents& all, GgufContents part) {
  const auto twice = [&](const std::string& name) -> Status {
    if (all.tensors.contains(name) || all.other_dtypes.contains(name)) {
      return Error{ErrorCode::kBadFile, part.metadata.file + ": tensor " + in_quotes(name) +
                                            " is in an earlier part too; expected it in one part"};
    }
    return Ok{};
  };
  for (const auto& [name, info] : part.tensors) {
    TIDEKV_TRY(twice(name));
  }
  for (const auto& [name, dtype] : part.other_dtypes) {
    TIDEKV_TRY(twice(name));
  }
  all.tensors.merge(part.tensors);
  all.other_dtypes.merge(part.other_dtypes);
  return Ok{};
}

Status check_total(const GgufContents& all) {
  const auto total = static_cast<std::int64_t>(all.tensors.size() + all.other_dtypes.size());
  const FieldReader fields = all.metadata.reader();
  TIDEKV_ASSIGN(const std::int64_t expected,
                fields.integer_or("split.tensors.count", {0, INT64_MAX}, total));
  if (expected != total) {
    return fields.error(ErrorCode::kBadFile, "split.tensors.count",
                        std::to_string(total) + ", the tensors of all parts together");
  }
  return Ok{};
}

Error missing_part(const std::string& given, const PartName& missing) {
  return Error{ErrorCode::kNotFound, given + ": part " + std::to_string(missing.number) + " of " +
                                         std::to_string(missing.count) + " is missing; expected " +
                                         spelled(missing)};
}

// `path` is that of any part.
Result<GgufModel> open_parts(const std::string& path, std::int64_t count) {
  std::optional<PartName> name = part_name(path);
  if (!name) {
    return Error{ErrorCode::kBadFile,
                 path + ": a part of a model split in " + std::to_string(count) +
                     "; expected a file name like name-00001-of-00003.gguf, to find the others"};
  }
  GgufModel model;
  FieldIndex first_fields;
  for (name->number = 1; name->number <= name->count; ++name->number) {
    const std::string part = spelled(*name);
    if (!file_exists(part)) {
      return missing_part(path, *name);
    }
    TIDEKV_ASSIGN(MappedFile mapped, MappedFile::open(part));
    TIDEKV_ASSIGN(GgufContents contents, parse_gguf(mapped.bytes(), part));
    TIDEKV_TRY(check_part(contents.metadata, *name));
    if (name->number == 1) {
      model.contents = std::move(contents);
      first_fields = index_of(model.contents.metadata);
    } else {
      TIDEKV_TRY(check_same_model(model.contents.metadata, first_fields, contents.metadata));
      TIDEKV_TRY(merge(model.contents, std::move(contents)));
    }
    model.files.push_back(std::move(mapped));
  }
  TIDEKV_TRY(check_total(model.contents));
  return model;
}

}  // namespace

Result<GgufModel> open_gguf(MappedFile file) {
  GgufModel model;
  TIDEKV_ASSIGN(model.contents, parse_gguf(file.bytes(), file.path()));
  TIDEKV_ASSIGN(const std::int64_t count,
                model.contents.metadata.reader().integer_or("split.count", {0, kMaxParts}, 1));
  if (count > 1) {
    return open_parts(file.path(), count);
  }
  model.files.push_back(std::move(file));
  return model;
}

std::vector<std::string> gguf_models_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code fault;
  for (std::filesystem::directory_iterator it(folder, fault), end; !fault && it != end;
       it.increment(fault)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(kSuffix) && file_exists(join_path(folder, name))) {
      names.insert(name);
    }
  }
  std::vector<std::string> models;
  std::set<std::pair<std::string, std::int64_t>> split;  // stem and count
  for (const std::string& name : names) {
    const std::optional<PartName> part = part_name(name);
    if (!part || split.emplace(part->stem, part->count).second) {
      models.push_back(name);
    }
  }
  return models;
}

}  // namespace tidekv
