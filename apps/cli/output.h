// Where results go: stdout for the text, files for reports. Every failed write is noticed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tidekv/memory_report.h"
#include "tidekv/result.h"

namespace tidekv::cli {

// Prints to stderr. A message that cannot be written is dropped: the answer matters more, and there
// is nowhere left to say it.
void print_message(std::string_view text);

// Refuses an output path that would overwrite what the run reads: `inputs` are files, folders with
// all their files, or - for stdin. `flag` names the option.
Status check_not_an_input(const char* flag, const std::optional<std::string>& output,
                          const std::vector<std::string>& inputs);

// Writes to stdout at once; remembers the first failure and writes nothing after it.
class StdoutText {
 public:
  // False if it could not be written, now or before.
  bool write(std::string_view text);
  bool failed() const { return error_ != 0; }
  // Prints what failed, if anything did; the exit code to return.
  int finish(int exit_code) const;
  char last() const { return last_; }  // the last byte written; 0 before the first

 private:
  int error_ = 0;  // errno
  char last_ = 0;
};

// A file opened before long work starts, so that a wrong path is known at once, and filled after
// it. What was there before stays until then; a file made for nothing is removed.
class OutputFile {
 public:
  // `flag` names the option in errors.
  static Result<OutputFile> open(const char* flag, const std::string& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  // Replaces the content. Once.
  Status write(std::string_view text);
  // Whether both are one file on a disk, whatever it is called.
  bool is_same_file(const OutputFile& other) const;
  const char* flag() const { return flag_; }

 private:
  OutputFile(int fd, bool created, const char* flag, std::string path)
      : fd_(fd), created_(created), flag_(flag), path_(std::move(path)) {}
  Error failure(const char* doing) const;

  int fd_;
  bool created_;  // by us, and nothing written yet
  const char* flag_;
  std::string path_;
};

// Nothing if no path was given.
Result<std::optional<OutputFile>> open_output(const char* flag,
                                              const std::optional<std::string>& path);

struct OutputPath {
  const char* flag;
  const std::optional<std::string>& path;
};
struct OutputFiles {
  std::optional<OutputFile> first;
  std::optional<OutputFile> second;
};
// Both, if there are paths; refused if one would overwrite the other.
Result<OutputFiles> open_outputs(const OutputPath& first, const OutputPath& second);

// Adds the rows of a ledger's timeline; `csv` starts with the header row if it is empty.
void append_timeline(std::string& csv, const std::string& method,
                     const std::vector<TimelineEntry>& timeline);

}  // namespace tidekv::cli
