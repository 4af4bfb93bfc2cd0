#include "io/file_signature.h"

#include <string_view>

namespace tidekv {
namespace {

struct Signature {
  std::string_view first_bytes;
  std::string_view what;
};

constexpr Signature kSignatures[] = {
    {"version https://git-lfs", "a Git LFS pointer; fetch the real file with 'git lfs pull'"},
    {"GGUF", "a GGUF file"},
    {"lmgg", "a GGML file from before GGUF; convert it to GGUF"},
    {"fmgg", "a GGML file from before GGUF; convert it to GGUF"},
    {"tjgg", "a GGML file from before GGUF; convert it to GGUF"},
    {"PK\x03\x04", "a zip archive, as torch.save writes; convert it to safetensors"},
    {"\x80\x02", "a Python pickle; convert it to safetensors"},
    {"\x80\x03", "a Python pickle; convert it to safetensors"},
    {"\x80\x04", "a Python pickle; convert it to safetensors"},
    {"\x80\x05", "a Python pickle; convert it to safetensors"},
    {"\x89HDF", "an HDF5 file; convert it to safetensors"},
    {"\x1F\x8B", "a gzip archive; unpack it first"},
    {"<", "a web page, perhaps an error message saved in place of the download"},
    {"{", "JSON text; for a sharded model give the folder of its index"},
};

}  // namespace

std::string looks_like(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const Signature& signature : kSignatures) {
    if (text.starts_with(signature.first_bytes)) {
      return "; the file looks like " + std::string(signature.what);
    }
  }
  return "";
}

}  // namespace tidekv
