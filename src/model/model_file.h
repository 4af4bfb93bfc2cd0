// A model as it lies on disk, a Hugging Face folder or a GGUF file: its shape and its weights.
#pragma once

#include <string>

#include "io/tensor_file.h"
#include "model/config.h"
#include "model/weights.h"
#include "tidekv/result.h"

namespace tidekv {

struct ModelFile {
  TensorFile file;  // `weights` are views of it
  ModelConfig config;
  HostModel weights;

  // `path`: a folder with a config.json, or what TensorFile::open takes for GGUF. Anything not
  // supported is refused by name.
  static Result<ModelFile> open(const std::string& path);

  bool is_gguf() const { return file.metadata() != nullptr; }
};

}  // namespace tidekv
