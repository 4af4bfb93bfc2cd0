// What a model's files hold, whether or not TideKV can run the model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tidekv/result.h"

namespace tidekv {

// One entry of a file's own description: of a GGUF file's metadata, or of config.json.
struct FieldListing {
  std::string key;
  std::string type;   // string, integer, number, bool, null, array, object; "array of string", ...
  std::string value;  // long texts and lists are cut, and say so by "..."
};

struct TensorListing {
  std::string name;
  std::string dtype;  // as tidekv names it, or, of a type it cannot use, as the file does
  std::vector<std::int64_t> shape;  // outermost first; of a type it cannot use, empty
  std::int64_t num_bytes = 0;       // the same: 0
};

struct ModelListing {
  std::string path;
  std::string format;  // "GGUF 3" or "safetensors"
  std::vector<FieldListing> fields;
  std::vector<TensorListing> tensors;
  std::optional<Error> damage;  // what ended the listing early
};

// `path`: a GGUF or safetensors file, or a Hugging Face folder. The files are checked as far as
// they must be to be read at all. Of a damaged GGUF file the listing has what stands before the
// damage, and of a folder with damaged files what the others say; an error if that is nothing.
Result<ModelListing> list_model(const std::string& path);

}  // namespace tidekv
