#include "prompt.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "text_layout.h"

namespace tidekv::cli {
namespace {

// Far more text than any model's context; bounds what an endless pipe can make us hold.
constexpr std::size_t kMaxPromptBytes = std::size_t{1} << 30;

Error read_error(const std::string& name) {
  const int code = errno;
  return Error{code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kBadFile,
               fmt::format("{}: cannot read: {}", printable(name), std::strerror(code))};
}

Result<std::string> read_all(int fd, const std::string& name) {
  std::string text;
  std::array<char, 65536> block{};
  while (true) {
    const ssize_t got = ::read(fd, block.data(), block.size());
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return read_error(name);
    }
    if (got == 0) {
      return text;
    }
    text.append(block.data(), static_cast<std::size_t>(got));
    if (text.size() > kMaxPromptBytes) {
      return Error{ErrorCode::kBadFile,
                   fmt::format("{}: more than {} bytes; too long for a prompt", printable(name),
                               grouped(static_cast<std::int64_t>(kMaxPromptBytes)))};
    }
  }
}

Result<std::string> read_file(const std::string& path) {
  if (path == "-") {
    return read_all(STDIN_FILENO, "stdin");
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return read_error(path);
  }
  Result<std::string> text = read_all(fd, path);
  ::close(fd);
  return text;
}

}  // namespace

void add_prompt_flags(Flags& flags, PromptFlags& prompt) {
  flags.group("Prompt");
  flags.text({"-p,--prompt", "TEXT", "the prompt, as it stands"}, prompt.text);
  flags.text({"-f,--file", "FILE", "its text in a file (-: stdin), less one trailing newline"},
             prompt.file);
  flags.on_off("-e,--escape", prompt.escapes, R"(replace \n \t \" \\ \xHH ... in the prompt)");
  flags.on_off("--no-bos", prompt.no_bos, "no begin-of-text token in front");
  flags.on_off("--parse-special", prompt.parse_special,
               "text that spells a special token becomes that token");
}

Result<std::string> read_prompt(const PromptFlags& flags) {
  if (flags.text && flags.file) {
    return Error{ErrorCode::kInvalidArgument, "give the prompt once: either -p or -f"};
  }
  if (!flags.given()) {
    return Error{ErrorCode::kInvalidArgument,
                 "no prompt; give one with -p TEXT or -f FILE (-f - reads stdin)"};
  }
  std::string text;
  if (flags.file) {
    TIDEKV_ASSIGN(text, read_file(*flags.file));
    if (!text.empty() && text.back() == '\n') {
      text.pop_back();
    }
  } else {
    text = *flags.text;
  }
  if (flags.escapes) {
    TIDEKV_ASSIGN(text, parse_escapes(text));
  }
  if (text.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 flags.file ? fmt::format("{}: the prompt is empty", printable(*flags.file))
                            : "-p: the prompt is empty"};
  }
  return text;
}

Result<std::vector<std::int32_t>> tokenize_prompt(const Engine& engine, const PromptFlags& flags,
                                                  const std::string& text) {
  TIDEKV_ASSIGN(
      std::vector<std::int32_t> ids,
      engine.tokenize(text, {.add_bos = !flags.no_bos, .parse_special = flags.parse_special}));
  if (ids.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the prompt has no tokens"};
  }
  return ids;
}

}  // namespace tidekv::cli
