#include "io/tensor_file.h"

#include <set>
#include <utility>

#include "base/json_value.h"
#include "io/gguf_parts.h"
#include "io/safetensors.h"
#include "io/shard_index.h"

namespace tidekv {
namespace {

constexpr std::int64_t kMaxIndexBytes = 16 << 20;

Status any_name(const std::string& /*name*/) { return Ok{}; }

// What stands in a folder instead, for an error.
std::string found_in(const std::string& folder, const std::vector<std::string>& gguf_models) {
  constexpr std::size_t kMaxListed = 10;
  std::string out;
  for (const std::string& name : gguf_models) {
    if (&name - gguf_models.data() == kMaxListed) {
      out += ", ...";
      break;
    }
    out += (out.empty() ? "; it holds GGUF files, give the path of one: " : ", ") + in_quotes(name);
  }
  if (file_exists(join_path(folder, "pytorch_model.bin")) ||
      file_exists(join_path(folder, "pytorch_model.bin.index.json"))) {
    out += "; pytorch_model.bin is not read: convert it to safetensors";
  }
  return out;
}

// The path of the GGUF model of a folder without safetensors.
Result<std::string> only_gguf_of(const std::string& folder) {
  const std::vector<std::string> models = gguf_models_in(folder);
  const bool hugging_face = file_exists(join_path(folder, "config.json"));
  if (models.size() == 1 && !hugging_face) {
    return join_path(folder, models.front());
  }
  return Error{ErrorCode::kNotFound,
               folder + ": expected model.safetensors or model.safetensors.index.json in it" +
                   (hugging_face ? "" : ", or one GGUF model") + found_in(folder, models)};
}

Status check_place(const ShardIndex& index, const std::string& name, const std::string& shard,
                   const std::string& index_path) {
  const auto it = index.find(name);
  if (it != index.end() && it->second == shard) {
    return Ok{};
  }
  const std::string place = it == index.end()
                                ? "not in weight_map"
                                : "placed in " + in_quotes(it->second) + " by weight_map";
  return Error{ErrorCode::kBadFile, index_path + ": tensor " + in_quotes(name) + " is in shard " +
                                        in_quotes(shard) + " but " + place +
                                        "; expected it in one shard, the one weight_map names"};
}

}  // namespace

Result<TensorFile> TensorFile::open(const std::string& path) {
  TensorFile out;
  out.path_ = path;
  if (!is_directory(path)) {
    TIDEKV_TRY(out.add_file(path));
    return out;
  }
  const std::string single = join_path(path, "model.safetensors");
  const std::string index = join_path(path, "model.safetensors.index.json");
  if (something_at(single)) {
    out.path_ = single;
    TIDEKV_ASSIGN(MappedFile mapped, MappedFile::open(single));
    TIDEKV_TRY(out.add_safetensors(std::move(mapped), any_name));
  } else if (something_at(index)) {
    out.path_ = index;
    TIDEKV_TRY(out.add_shards(path, index));
  } else {
    TIDEKV_ASSIGN(const std::string model, only_gguf_of(path));
    out.path_ = model;
    TIDEKV_TRY(out.add_file(model));
  }
  return out;
}

Status TensorFile::add_file(const std::string& path) {
  TIDEKV_ASSIGN(MappedFile mapped, MappedFile::open(path));
  if (begins_like_gguf(mapped.bytes())) {
    return add_gguf(std::move(mapped));
  }
  if (path.ends_with(".gguf") && !parse_safetensors(mapped.bytes(), path).ok()) {
    return add_gguf(std::move(mapped));  // neither: complains as its name suggests
  }
  return add_safetensors(std::move(mapped), any_name);
}

Status TensorFile::add_gguf(MappedFile file) {
  TIDEKV_ASSIGN(GgufModel model, open_gguf(std::move(file)));
  files_ = std::move(model.files);
  tensors_ = std::move(model.contents.tensors);
  other_dtypes_ = std::move(model.contents.other_dtypes);
  metadata_ = std::move(model.contents.metadata);
  return Ok{};
}

Status TensorFile::add_safetensors(MappedFile file, const NameCheck& check) {
  TIDEKV_ASSIGN(SafetensorsContents contents, parse_safetensors(file.bytes(), file.path()));
  for (const auto& [name, info] : contents.tensors) {
    TIDEKV_TRY(check(name));
  }
  for (const auto& [name, dtype] : contents.other_dtypes) {
    TIDEKV_TRY(check(name));
  }
  files_.push_back(std::move(file));
  tensors_.merge(contents.tensors);
  other_dtypes_.merge(contents.other_dtypes);
  return Ok{};
}

Status TensorFile::add_shards(const std::string& folder, const std::string& index_path) {
  TIDEKV_ASSIGN(const std::string json, read_small_file(index_path, kMaxIndexBytes));
  TIDEKV_ASSIGN(const ShardIndex index, parse_shard_index(json, index_path));
  std::set<std::string> shards;
  for (const auto& [name, shard] : index) {
    shards.insert(shard);
  }
  for (const std::string& shard : shards) {
    const std::string path = join_path(folder, shard);
    if (!file_exists(path)) {
      return Error{ErrorCode::kNotFound, index_path + ": weight_map names " + in_quotes(shard) +
                                             ", which is not in the folder; expected every shard"};
    }
    // One place in the index for each name: a tensor in two shards fails in one of them.
    TIDEKV_ASSIGN(MappedFile mapped, MappedFile::open(path));
    TIDEKV_TRY(add_safetensors(std::move(mapped), [&](const std::string& name) {
      return check_place(index, name, shard, index_path);
    }));
  }
  for (const auto& [name, shard] : index) {
    if (!tensors_.contains(name) && !other_dtypes_.contains(name)) {
      return Error{ErrorCode::kBadFile, index_path + ": weight_map places tensor " +
                                            in_quotes(name) + " in " + in_quotes(shard) +
                                            ", which does not hold it; expected it there"};
    }
  }
  return Ok{};
}

Result<TensorInfo> TensorFile::find(std::string_view name) const {
  if (const auto it = tensors_.find(name); it != tensors_.end()) {
    return it->second;
  }
  if (const auto it = other_dtypes_.find(name); it != other_dtypes_.end()) {
    return Error{ErrorCode::kUnsupported,
                 path_of(name) + ": tensor " + in_quotes(name) + " is of type " + it->second +
                     "; expected " + std::string(metadata_ ? kGgufTypesRead : "BF16, F16 or F32")};
  }
  return Error{ErrorCode::kNotFound,
               path_ + ": tensor " + in_quotes(name) + " is not in it; expected it there"};
}

Result<HostView> TensorFile::matrix(std::string_view name) const {
  TIDEKV_ASSIGN(const TensorInfo info, find(name));
  switch (info.shape.size()) {
    case 1:
      return HostView{info.data, info.dtype, 1, info.shape[0]};
    case 2:
      return HostView{info.data, info.dtype, info.shape[0], info.shape[1]};
    default:
      return Error{ErrorCode::kBadFile, path_of(name) + ": tensor " + in_quotes(name) + " has " +
                                            std::to_string(info.shape.size()) +
                                            " dimensions; expected one or two"};
  }
}

std::string TensorFile::path_of(std::string_view name) const {
  const auto it = tensors_.find(name);
  for (const MappedFile& file : files_) {
    const std::span<const std::byte> bytes = file.bytes();
    if (it != tensors_.end() && !std::less<>()(it->second.data, bytes.data()) &&
        !std::less<>()(bytes.data() + bytes.size(), it->second.data)) {
      return file.path();
    }
  }
  return path_;
}

std::int64_t TensorFile::mapped_bytes() const {
  std::int64_t total = 0;
  for (const MappedFile& file : files_) {
    total += static_cast<std::int64_t>(file.bytes().size());
  }
  return total;
}

}  // namespace tidekv
