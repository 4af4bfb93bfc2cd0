#include "model/model_file.h"

#include <utility>

#include "base/file.h"
#include "model/gguf_config.h"

namespace tidekv {
namespace {

Result<ModelConfig> config_of(const TensorFile& file, const std::string& path) {
  if (file.metadata() != nullptr) {
    return read_gguf_config(file);
  }
  return Error{ErrorCode::kBadFile,
               path + (is_directory(path) ? ": no config.json in it; expected a Hugging Face "
                                            "folder or a GGUF file"
                                          : ": tensors alone; expected the folder that also holds "
                                            "config.json and the tokenizer, or a GGUF file")};
}

}  // namespace

Result<ModelFile> ModelFile::open(const std::string& path) {
  const bool is_folder = is_directory(path) && something_at(join_path(path, "config.json"));
  ModelConfig config;
  if (is_folder) {  // before its tensors: what is not supported is no damaged file
    TIDEKV_ASSIGN(config, read_model_config(path));
  }
  TIDEKV_ASSIGN(TensorFile file, TensorFile::open(path));
  if (!is_folder) {
    TIDEKV_ASSIGN(config, config_of(file, path));
  }
  TIDEKV_ASSIGN(HostModel weights, bind_weights(file, config));
  return ModelFile{std::move(file), std::move(config), std::move(weights)};
}

}  // namespace tidekv
