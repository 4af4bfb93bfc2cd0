// A GGUF model on disk: one file, or parts name-00001-of-00003.gguf in one folder.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "io/gguf.h"
#include "tidekv/result.h"

namespace tidekv {

struct GgufModel {
  std::vector<MappedFile> files;  // the contents point into them
  GgufContents contents;          // the first part's metadata, the tensors of all parts
};

// Of a split model, `file` may be any part; all parts are opened.
Result<GgufModel> open_gguf(MappedFile file);

// The GGUF models of a folder, in order: of a split one, its first part that is there.
std::vector<std::string> gguf_models_in(const std::string& folder);

}  // namespace tidekv
