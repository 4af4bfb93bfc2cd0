#include "io/tensor_file.h"

#include <set>
#include <utility>

#include "base/json_value.h"
#include "io/safetensors.h"
#include "io/shard_index.h"

namespace tidekv {
namespace {

constexpr std::int64_t kMaxIndexBytes = 64 << 20;

Error not_a_model_folder(const std::string& folder) {
  std::string what = folder + ": expected model.safetensors or model.safetensors.index.json in it";
  if (file_exists(join_path(folder, "pytorch_model.bin")) ||
      file_exists(join_path(folder, "pytorch_model.bin.index.json"))) {
    what += "; pytorch_model.bin is not read: convert it to safetensors";
  }
  return Error{ErrorCode::kNotFound, what};
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
  const auto any_name = [](const std::string& /*name*/) -> Status { return Ok{}; };
  TensorFile out;
  out.path_ = path;
  if (!is_directory(path)) {
    TIDEKV_TRY(out.add_file(path, any_name));
    return out;
  }
  const std::string single = join_path(path, "model.safetensors");
  const std::string index = join_path(path, "model.safetensors.index.json");
  if (file_exists(single)) {
    TIDEKV_TRY(out.add_file(single, any_name));
  } else if (file_exists(index)) {
    TIDEKV_TRY(out.add_shards(path, index));
  } else {
    return not_a_model_folder(path);
  }
  return out;
}

Status TensorFile::add_file(const std::string& path,
                            const std::function<Status(const std::string& name)>& check) {
  TIDEKV_ASSIGN(MappedFile mapped, MappedFile::open(path));
  TIDEKV_ASSIGN(SafetensorsContents contents, parse_safetensors(mapped.bytes(), path));
  for (const auto& [name, info] : contents.tensors) {
    TIDEKV_TRY(check(name));
  }
  for (const auto& [name, dtype] : contents.other_dtypes) {
    TIDEKV_TRY(check(name));
  }
  files_.push_back(std::move(mapped));
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
    TIDEKV_TRY(add_file(path, [&](const std::string& name) {
      return check_place(index, name, shard, index_path);
    }));
  }
  for (const auto& [name, shard] : index) {
    if (!tensors_.contains(name) && !other_dtypes_.contains(name)) {
      return Error{ErrorCode::kBadFile, index_path + ": weight_map places tensor " +
                                            in_quotes(name) + " in " + in_quotes(shard) +
                                            ", which does not hold it"};
    }
  }
  return Ok{};
}

Result<TensorInfo> TensorFile::find(std::string_view name) const {
  if (const auto it = tensors_.find(name); it != tensors_.end()) {
    return it->second;
  }
  if (const auto it = other_dtypes_.find(name); it != other_dtypes_.end()) {
    return Error{ErrorCode::kUnsupported, path_ + ": tensor " + in_quotes(name) + " is of type " +
                                              it->second + "; expected BF16, F16 or F32"};
  }
  return Error{ErrorCode::kNotFound, path_ + ": tensor " + in_quotes(name) + " is not in it"};
}

Result<HostView> TensorFile::matrix(std::string_view name) const {
  TIDEKV_ASSIGN(const TensorInfo info, find(name));
  switch (info.shape.size()) {
    case 1:
      return HostView{info.data, info.dtype, 1, info.shape[0]};
    case 2:
      return HostView{info.data, info.dtype, info.shape[0], info.shape[1]};
    default:
      return Error{ErrorCode::kBadFile, path_ + ": tensor " + in_quotes(name) + " has " +
                                            std::to_string(info.shape.size()) +
                                            " dimensions; expected one or two"};
  }
}

std::int64_t TensorFile::mapped_bytes() const {
  std::int64_t total = 0;
  for (const MappedFile& file : files_) {
    total += static_cast<std::int64_t>(file.bytes().size());
  }
  return total;
}

}  // namespace tidekv
