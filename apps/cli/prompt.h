// The prompt: from a flag, a file or stdin.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flags.h"
#include "tidekv/engine.h"
#include "tidekv/result.h"

namespace tidekv::cli {

struct PromptFlags {
  std::optional<std::string> text;
  std::optional<std::string> file;    // "-": stdin
  std::optional<std::string> tokens;  // a file of ids instead of a text; "-": stdin
  bool escapes = false;
  bool no_bos = false;
  bool parse_special = false;
  bool chat = false;                  // the text is a user's message
  std::optional<std::string> system;  // what precedes it

  bool given() const { return text || file || tokens; }
};

void add_prompt_flags(Flags& flags, PromptFlags& prompt);

// Refuses flags that name no prompt, or two. Reads nothing.
Status check_prompt_flags(const PromptFlags& flags);

// How long a text may be, so that neither a huge file nor an endless stdin fills the memory.
struct PromptLimit {
  std::int64_t max_bytes = 0;
  std::string reason;  // ends the error: "a context of 500 tokens holds at most"
};

// What the context of a request can hold.
PromptLimit limit_of_context(const ModelInfo& model, const PrefillOptions& options);
// What is tokenized for its own sake.
PromptLimit limit_of_listing();

// All bytes of a file; "-": stdin.
Result<std::string> read_text_file(const std::string& path, const PromptLimit& limit);

// The prompt's bytes, never empty: its text, or its ids as they are typed. Of a file (or stdin) one
// trailing newline is dropped. The flags were checked.
Result<std::string> read_prompt(const PromptFlags& flags, const PromptLimit& limit);

// Its token ids, never none.
Result<std::vector<std::int32_t>> tokenize_prompt(const Engine& engine, const PromptFlags& flags,
                                                  const std::string& text);

}  // namespace tidekv::cli
