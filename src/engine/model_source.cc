#include "engine/model_source.h"

#include <utility>

#include "engine/gguf_tokenizer.h"

namespace tidekv {

Result<ModelSource> ModelSource::open(const std::string& path) {
  TIDEKV_ASSIGN(ModelFile model, ModelFile::open(path));
  std::unique_ptr<Tokenizer> tokenizer;
  if (model.is_gguf()) {
    TIDEKV_ASSIGN(tokenizer, read_gguf_tokenizer(*model.file.metadata()));
  } else {
    TIDEKV_ASSIGN(tokenizer, load_tokenizer(path));
  }
  // An id the model has no row for would read past its matrices.
  if (tokenizer->vocab_size() > model.config.vocab_size) {
    return Error{ErrorCode::kBadFile,
                 path + ": the tokenizer's largest id is " +
                     std::to_string(tokenizer->vocab_size() - 1) + "; expected at most " +
                     std::to_string(model.config.vocab_size - 1) + ", the last of the model's " +
                     std::to_string(model.config.vocab_size) + " tokens"};
  }
  return ModelSource{std::move(model), std::move(tokenizer)};
}

}  // namespace tidekv
