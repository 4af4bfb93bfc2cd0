// Bytes on disk to named host tensors: Hugging Face safetensors, one file or a sharded index.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "tensor/view.h"
#include "tidekv/result.h"

namespace tidekv {

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
  // `path`: a .safetensors file, or a folder with model.safetensors or model.safetensors.index.json.
  static Result<TensorFile> open(const std::string& path);

  // In name order.
  const std::map<std::string, TensorInfo, std::less<>>& tensors() const { return tensors_; }

  // kNotFound with the file's name if there is no such tensor.
  Result<TensorInfo> find(std::string_view name) const;

  // The same as a matrix: one row for a 1-D tensor, an error for other ranks.
  Result<HostView> matrix(std::string_view name) const;

  const std::string& path() const { return path_; }
  std::int64_t mapped_bytes() const;  // sizes of the mapped files together

 private:
  std::string path_;
  std::vector<MappedFile> files_;
  std::map<std::string, TensorInfo, std::less<>> tensors_;
};

}  // namespace tidekv
