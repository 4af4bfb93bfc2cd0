// Bytes on disk to named host tensors: Hugging Face safetensors, one file or a sharded index, and
// GGUF, one file or its parts.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "io/gguf_metadata.h"
#include "io/tensor_info.h"
#include "tensor/view.h"
#include "tidekv/result.h"

namespace tidekv {

// The tensors of a model, mapped for the lifetime of this object. Everything is checked at open:
// after that, data and shapes can be trusted (values cannot; NaN is legal).
class TensorFile {
 public:
  // `path`: a safetensors or GGUF file, told apart by content; or a folder with model.safetensors,
  // model.safetensors.index.json or, if it is no Hugging Face folder, one GGUF model. Of a split
  // GGUF model any part may be given: all are opened.
  static Result<TensorFile> open(const std::string& path);

  // Those that can be used, in name order: of type BF16, F16 or F32, in GGUF also quantised.
  const std::map<std::string, TensorInfo, std::less<>>& tensors() const { return tensors_; }

  // kNotFound with the file's name if there is no such tensor, kUnsupported if it is of another
  // type: a file may hold those (index buffers, say), but nobody can use them.
  Result<TensorInfo> find(std::string_view name) const;

  // The same as a matrix: one row for a 1-D tensor, an error for other ranks.
  Result<HostView> matrix(std::string_view name) const;

  // The others, name to type as the file spells it.
  const std::map<std::string, std::string, std::less<>>& other_dtypes() const {
    return other_dtypes_;
  }

  // Of a GGUF file (of a split one, the first part's); null for safetensors. Points into this.
  const GgufMetadata* metadata() const { return metadata_ ? &*metadata_ : nullptr; }

  // What a missing tensor is missing from: the file itself, or the index of its shards.
  const std::string& path() const { return path_; }
  // The file that holds this tensor; path() if none does, or if its type is not one of those above.
  std::string path_of(std::string_view name) const;
  std::int64_t mapped_bytes() const;  // sizes of the mapped files together

 private:
  using NameCheck = std::function<Status(const std::string& name)>;

  Status add_file(const std::string& path);  // of either kind
  Status add_gguf(MappedFile file);
  // `check` sees the name of every tensor in the file.
  Status add_safetensors(MappedFile file, const NameCheck& check);
  Status add_shards(const std::string& folder, const std::string& index_path);

  std::string path_;
  std::vector<MappedFile> files_;
  std::map<std::string, TensorInfo, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> other_dtypes_;
  std::optional<GgufMetadata> metadata_;
};

}  // namespace tidekv
