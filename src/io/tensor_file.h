// Bytes on disk to named host tensors: Hugging Face safetensors, one file or a sharded index.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "tensor/view.h"
#include "tidekv/result.h"

namespace tidekv {

struct GgufMetadata;

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;  // outermost first; empty for a scalar
  const std::byte* data = nullptr;  // inside a mapped file
  std::int64_t num_bytes = 0;
};

// The tensors of a model, mapped for the lifetime of this object. Everything is checked at open:
// after that, data and shapes can be trusted (values cannot; NaN is legal).
class TensorFile {
 public:
  // `path`: a .safetensors file, or a folder with model.safetensors or
  // model.safetensors.index.json.
  static Result<TensorFile> open(const std::string& path);

  // Those of type BF16, F16 or F32, in name order.
  const std::map<std::string, TensorInfo, std::less<>>& tensors() const { return tensors_; }

  // kNotFound with the file's name if there is no such tensor, kUnsupported if it is of another
  // type: a file may hold those (index buffers, say), but nobody can use them.
  Result<TensorInfo> find(std::string_view name) const;

  // The same as a matrix: one row for a 1-D tensor, an error for other ranks.
  Result<HostView> matrix(std::string_view name) const;

  // Of a GGUF file; null for safetensors.
  const GgufMetadata* metadata() const { return nullptr; }

  const std::string& path() const { return path_; }
  std::int64_t mapped_bytes() const;  // sizes of the mapped files together

 private:
  // `check` sees the name of every tensor in the file.
  Status add_file(const std::string& path,
                  const std::function<Status(const std::string& name)>& check);
  Status add_shards(const std::string& folder, const std::string& index_path);

  std::string path_;
  std::vector<MappedFile> files_;
  std::map<std::string, TensorInfo, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> other_dtypes_;  // name to type, as spelled
};

}  // namespace tidekv
