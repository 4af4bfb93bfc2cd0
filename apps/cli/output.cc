#include "output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "exit_codes.h"
#include "text_layout.h"

namespace tidekv::cli {
namespace {

// 0, or errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(fd, text.data(), text.size());
    if (done < 0 && errno != EINTR) {
      return errno;
    }
    text.remove_prefix(done > 0 ? static_cast<std::size_t>(done) : 0);
  }
  return 0;
}

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Whether the file at `path` is what `input`, a path or - for stdin, reads.
bool is_read_as(const std::string& path, const std::string& input) {
  struct stat info {};
  struct stat read {};
  const bool known = input == "-" ? ::fstat(STDIN_FILENO, &read) == 0 && S_ISREG(read.st_mode)
                                  : ::stat(input.c_str(), &read) == 0;
  return known && ::stat(path.c_str(), &info) == 0 && is_same_file(info, read);
}

// A file is itself; a folder is all the files in it.
std::vector<std::string> files_of(const std::string& path) {
  std::error_code ignored;  // what cannot be listed is reported by whoever reads it
  std::vector<std::string> files = {path};
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    files.push_back(entry.path().string());
  }
  return files;
}

}  // namespace

void print_message(std::string_view text) { write_all(STDERR_FILENO, text); }

Status check_not_an_input(const char* flag, const std::optional<std::string>& output,
                          const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    for (const std::string& file : files_of(input)) {
      if (output && is_read_as(*output, file)) {
        return Error{
            ErrorCode::kInvalidArgument,
            fmt::format("{} {} would overwrite {}, which this command reads; choose "
                        "another file",
                        flag, printable(*output), file == "-" ? "stdin" : printable(file))};
      }
    }
  }
  return Ok{};
}

bool StdoutText::write(std::string_view text) {
  if (error_ == 0 && !text.empty()) {
    error_ = write_all(STDOUT_FILENO, text);
    last_ = text.back();
  }
  return error_ == 0;
}

int StdoutText::finish(int exit_code) const {
  if (error_ == 0) {
    return exit_code;
  }
  print_message(fmt::format("tidekv: error: stdout: cannot write: {}\n", std::strerror(error_)));
  return kExitOther;
}

Result<OutputFile> OutputFile::open(const char* flag, const std::string& path) {
  constexpr mode_t kMode = 0666;  // less the umask
  bool created = true;
  int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
  if (fd < 0 && errno == EEXIST) {
    created = false;
    fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  }
  OutputFile file(fd, created && fd >= 0, flag, path);
  if (fd < 0) {
    return file.failure("open for writing");
  }
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      created_(std::exchange(other.created_, false)),
      flag_(other.flag_),
      path_(std::move(other.path_)) {}

OutputFile::~OutputFile() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
  if (created_) {
    ::unlink(path_.c_str());
  }
}

Status OutputFile::write(std::string_view text) {
  struct stat info {};
  if (::fstat(fd_, &info) == 0 && S_ISREG(info.st_mode) && ::ftruncate(fd_, 0) != 0) {
    return failure("empty the file");
  }
  created_ = false;
  errno = write_all(fd_, text);
  if (errno != 0) {
    return failure("write");
  }
  // Some file systems report a full disk only here.
  if (::close(std::exchange(fd_, -1)) != 0) {
    return failure("write");
  }
  return Ok{};
}

bool OutputFile::is_same_file(const OutputFile& other) const {
  struct stat mine {};
  struct stat others {};
  return ::fstat(fd_, &mine) == 0 && ::fstat(other.fd_, &others) == 0 && S_ISREG(mine.st_mode) &&
         cli::is_same_file(mine, others);
}

Error OutputFile::failure(const char* doing) const {
  return Error{ErrorCode::kBadFile, fmt::format("{} {}: cannot {}: {}", flag_, printable(path_),
                                                doing, std::strerror(errno))};
}

Result<std::optional<OutputFile>> open_output(const char* flag,
                                              const std::optional<std::string>& path) {
  if (!path) {
    return std::optional<OutputFile>();
  }
  TIDEKV_ASSIGN(OutputFile file, OutputFile::open(flag, *path));
  return std::optional<OutputFile>(std::move(file));
}

Result<OutputFiles> open_outputs(const OutputPath& first, const OutputPath& second) {
  TIDEKV_ASSIGN(auto one, open_output(first.flag, first.path));
  TIDEKV_ASSIGN(auto other, open_output(second.flag, second.path));
  if (one && other && one->is_same_file(*other)) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} and {} name the same file; choose two", one->flag(), other->flag())};
  }
  return OutputFiles{std::move(one), std::move(other)};
}

void append_timeline(std::string& csv, const std::string& method,
                     const std::vector<TimelineEntry>& timeline) {
  if (csv.empty()) {
    csv = "method,stage,layer,component,delta_bytes,live_bytes\n";
  }
  for (const TimelineEntry& entry : timeline) {
    csv += fmt::format("{},{},{},{},{},{}\n", method, entry.stage, entry.layer, entry.component,
                       entry.delta_bytes, entry.live_bytes);
  }
}

}  // namespace tidekv::cli
