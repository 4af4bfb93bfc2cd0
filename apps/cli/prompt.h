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
  std::optional<std::string> file;  // "-": stdin
  bool escapes = false;
  bool no_bos = false;
  bool parse_special = false;

  bool given() const { return text || file; }
};

void add_prompt_flags(Flags& flags, PromptFlags& prompt);

// The prompt's bytes, never empty. Of a file (or stdin) one trailing newline is dropped.
Result<std::string> read_prompt(const PromptFlags& flags);

// Its token ids, never none.
Result<std::vector<std::int32_t>> tokenize_prompt(const Engine& engine, const PromptFlags& flags,
                                                  const std::string& text);

}  // namespace tidekv::cli
