// model.safetensors.index.json: which file of the same folder holds each tensor.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "tidekv/result.h"

namespace tidekv {

// Tensor name to shard file name. Shard names are plain: they cannot lead out of the folder.
using ShardIndex = std::map<std::string, std::string, std::less<>>;

Result<ShardIndex> parse_shard_index(std::string_view json, const std::string& file);

}  // namespace tidekv
