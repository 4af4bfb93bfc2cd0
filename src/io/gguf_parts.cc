#include "io/gguf_parts.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

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
    } else {
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
