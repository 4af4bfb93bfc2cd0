// Read-only mapped files, and small files read whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "tidekv/result.h"

namespace tidekv {

// A file's bytes, mapped read-only for the lifetime of this object. The size is taken at open; a
// file that somebody truncates while it is mapped makes a later read fail with SIGBUS, as with
// every mapped file, so do not overwrite a model in place while it is in use.
class MappedFile {
 public:
  static Result<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  MappedFile(const std::byte* data, std::size_t size, std::string path)
      : data_(data), size_(size), path_(std::move(path)) {}

  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  std::string path_;
};

// The whole of a small file (a config, an index). An error if it is longer than `max_bytes`.
Result<std::string> read_small_file(const std::string& path, std::int64_t max_bytes);

bool file_exists(const std::string& path);  // a regular file
// Anything at all: also a folder, a pipe, or a link that leads nowhere. An optional file is read if
// this holds, so that one which cannot be read is an error and not taken for absent.
bool something_at(const std::string& path);
bool is_directory(const std::string& path);

// folder + "/" + name.
std::string join_path(const std::string& folder, const std::string& name);

}  // namespace tidekv
