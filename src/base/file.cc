#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tidekv {
namespace {

// Closes the descriptor at the end of the scope that opened it.
class Descriptor {
 public:
  // Without waiting: a named pipe must be refused as not a regular file, not wait for a writer.
  explicit Descriptor(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

Error system_error(const std::string& path, const char* doing) {
  const int code = errno;
  const ErrorCode kind = code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kBadFile;
  const char* why = code == ENOENT && something_at(path) ? "it is a link that leads nowhere"
                                                         : std::strerror(code);
  return Error{kind, path + ": cannot " + doing + ": " + why};
}

// Size of a regular file; a folder, a pipe or a device is an error.
Result<std::size_t> regular_file_size(const Descriptor& file, const std::string& path) {
  if (file.get() < 0) {
    return system_error(path, "open");
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) {
    return system_error(path, "read its size");
  }
  if (!S_ISREG(info.st_mode)) {
    return Error{ErrorCode::kBadFile,
                 path + ": not a regular file; expected one, not a folder, a pipe or a device"};
  }
  return static_cast<std::size_t>(info.st_size);
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path) {
  const Descriptor file(path);
  TIDEKV_ASSIGN(const std::size_t size, regular_file_size(file, path));
  if (size == 0) {
    return Error{ErrorCode::kBadFile, path + ": the file is empty; expected a complete file"};
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) {
    return system_error(path, "map");
  }
  return MappedFile(static_cast<const std::byte*>(data), size, path);
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<std::byte*>(data_),
             size_);  // munmap's signature
  }
}

Result<std::string> read_small_file(const std::string& path, std::int64_t max_bytes) {
  const Descriptor file(path);
  TIDEKV_ASSIGN(const std::size_t size, regular_file_size(file, path));
  if (size > static_cast<std::size_t>(max_bytes)) {
    return Error{ErrorCode::kBadFile, path + ": " + std::to_string(size) +
                                          " bytes; expected at most " + std::to_string(max_bytes)};
  }
  std::string text(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.get(), text.data() + done, size - done);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return system_error(path, "read");
    }
    done += static_cast<std::size_t>(got);
  }
  return text;
}

bool file_exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool something_at(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string join_path(const std::string& folder, const std::string& name) {
  return folder.empty() || folder.back() == '/' ? folder + name : folder + "/" + name;
}

}  // namespace tidekv
