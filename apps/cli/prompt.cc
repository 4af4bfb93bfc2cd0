#include "prompt.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/checked_math.h"
#include "text_layout.h"
#include "values.h"

namespace tidekv::cli {
namespace {

// Some tokenizers drop or join white space, so that a text may be longer than its tokens are.
constexpr std::int64_t kLeastMaxBytes = std::int64_t{1} << 20;
constexpr std::int64_t kMaxListedBytes = std::int64_t{64} << 20;

Error read_error(const std::string& name) {
  const int code = errno;
  return Error{code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kBadFile,
               fmt::format("{}: cannot read: {}", printable(name), std::strerror(code))};
}

Error too_long(const std::string& name, const std::string& size, const PromptLimit& limit) {
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{}: {} bytes; {} {} bytes", printable(name), size, limit.reason,
                           grouped(limit.max_bytes))};
}

Result<std::string> read_all(int fd, const std::string& name, const PromptLimit& limit) {
  struct stat info {};
  if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > limit.max_bytes) {
    return too_long(name, grouped(info.st_size), limit);
  }
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
    if (std::cmp_greater(text.size(), limit.max_bytes)) {
      return too_long(name, "more than " + grouped(limit.max_bytes), limit);
    }
  }
}

Result<std::vector<std::int32_t>> parse_ids(std::string_view text, std::int64_t vocab_size) {
  constexpr std::string_view kSpaces = " \t\r\n";
  std::vector<std::int32_t> ids;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(kSpaces), text.size()));
    if (text.empty()) {
      break;
    }
    const std::string_view word = text.substr(0, text.find_first_of(kSpaces));
    const Result<std::int64_t> id = parse_integer(word, {0, vocab_size - 1});
    if (!id.ok()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("--tokens: id number {}: {}", ids.size() + 1, id.error().message)};
    }
    ids.push_back(static_cast<std::int32_t>(id.value()));
    text.remove_prefix(word.size());
  }
  if (ids.empty()) {
    return Error{ErrorCode::kInvalidArgument, "--tokens: the file holds no ids, only white space"};
  }
  return ids;
}

}  // namespace

void add_prompt_flags(Flags& flags, PromptFlags& prompt) {
  flags.group("Prompt");
  flags.text({"-p,--prompt", "TEXT", "the prompt, as it stands"}, prompt.text);
  flags.text({"-f,--file", "FILE", "its text in a file (-: stdin), less one trailing newline"},
             prompt.file);
  flags.text({"--tokens", "FILE", "its token ids in a file (-: stdin), white space between them"},
             prompt.tokens);
  flags.on_off("-e,--escape", prompt.escapes, R"(replace \n \t \" \\ \xHH ... in the prompt)");
  flags.on_off("--no-bos", prompt.no_bos, "no begin-of-text token in front");
  flags.on_off("--parse-special", prompt.parse_special,
               "text that spells a special token becomes that token");
  flags.on_off("--chat", prompt.chat, "the prompt is a message, put in the model's own chat form");
  flags.text({"--system", "TEXT", "with --chat: the message before it that sets the tone"},
             prompt.system);
}

Status check_prompt_flags(const PromptFlags& flags) {
  if (int{flags.text.has_value()} + int{flags.file.has_value()} + int{flags.tokens.has_value()} >
      1) {
    return Error{ErrorCode::kInvalidArgument, "give the prompt once: -p, -f or --tokens"};
  }
  if (!flags.given()) {
    return Error{ErrorCode::kInvalidArgument,
                 "no prompt; give one with -p TEXT or -f FILE (-f - reads stdin)"};
  }
  if (flags.tokens && (flags.escapes || flags.no_bos || flags.parse_special || flags.chat)) {
    return Error{ErrorCode::kInvalidArgument,
                 "--tokens gives the ids as they are; leave out -e, --no-bos, --parse-special and "
                 "--chat"};
  }
  if (flags.system && !flags.chat) {
    return Error{ErrorCode::kInvalidArgument, "--system is a message of a chat; add --chat"};
  }
  if (flags.chat && (flags.no_bos || flags.parse_special)) {
    return Error{ErrorCode::kInvalidArgument,
                 "--chat decides about special tokens itself; leave out --no-bos and "
                 "--parse-special"};
  }
  for (const auto& [flag, path] :
       {std::pair("-f", flags.file), std::pair("--tokens", flags.tokens)}) {
    if (path && path->empty()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{}: the path is empty; expected a file, or - for stdin", flag)};
    }
  }
  return Ok{};
}

PromptLimit limit_of_context(const ModelInfo& model, const PrefillOptions& options) {
  std::int64_t tokens = options.context_len > 0 ? options.context_len : model.max_positions;
  if (!options.beyond_context) {
    tokens = std::min(tokens, model.max_positions);
  }
  const std::int64_t bytes = checked_mul(tokens, model.longest_token_bytes)
                                 .value_or(std::numeric_limits<std::int64_t>::max());
  return {std::max(bytes, kLeastMaxBytes),
          fmt::format("a context of {} tokens holds at most", grouped(tokens))};
}

PromptLimit limit_of_listing() { return {kMaxListedBytes, "a listing takes at most"}; }

Result<std::string> read_text_file(const std::string& path, const PromptLimit& limit) {
  if (path == "-") {
    return read_all(STDIN_FILENO, "stdin", limit);
  }
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return read_error(path);
  }
  Result<std::string> text = read_all(fd, path, limit);
  ::close(fd);
  return text;
}

Result<std::string> read_prompt(const PromptFlags& flags, const PromptLimit& limit) {
  std::string text;
  const std::optional<std::string>& path = flags.tokens ? flags.tokens : flags.file;
  if (path) {
    TIDEKV_ASSIGN(text, read_text_file(*path, limit));
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
                 path ? fmt::format("{}: the prompt is empty", printable(*path))
                      : "-p: the prompt is empty"};
  }
  return text;
}

Result<std::vector<std::int32_t>> tokenize_prompt(const Engine& engine, const PromptFlags& flags,
                                                  const std::string& text) {
  if (flags.tokens) {
    return parse_ids(text, engine.model().vocab_size);
  }
  if (flags.chat) {
    std::vector<ChatMessage> messages;
    if (flags.system) {
      messages.push_back({"system", *flags.system});
    }
    messages.push_back({"user", text});
    return engine.tokenize_chat(messages);
  }
  TIDEKV_ASSIGN(
      std::vector<std::int32_t> ids,
      engine.tokenize(text, {.add_bos = !flags.no_bos, .parse_special = flags.parse_special}));
  if (ids.empty()) {
    return Error{ErrorCode::kInvalidArgument, "the prompt has no tokens"};
  }
  return ids;
}

}  // namespace tidekv::cli
