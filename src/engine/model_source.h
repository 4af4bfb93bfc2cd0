// A model and its tokenizer, from a Hugging Face folder or a GGUF file.
#pragma once

#include <memory>
#include <string>

#include "model/model_file.h"
#include "text/tokenizer.h"
#include "tidekv/result.h"

namespace tidekv {

struct ModelSource {
  ModelFile model;
  std::unique_ptr<Tokenizer> tokenizer;

  // Anything not supported is refused by name.
  static Result<ModelSource> open(const std::string& path);
};

}  // namespace tidekv
