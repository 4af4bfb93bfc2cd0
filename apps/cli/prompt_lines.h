// A file of prompts, one JSON object a line: what `tidekv sweep` reads. Strangers write it: every
// error names the line and what would be right, and sizes are bounded by what a context holds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tidekv/chat.h"
#include "tidekv/result.h"

namespace tidekv::cli {

struct PromptLine {
  std::string where;  // "FILE: line 7", for errors
  std::string id;     // its own, or the number of the line
  // A text, the ids as they are, or a conversation for the model's chat form.
  std::variant<std::string, std::vector<std::int32_t>, std::vector<ChatMessage>> prompt;
  std::string prefix;                // the answer's beginning, which goes behind the prompt
  std::vector<std::string> answers;  // what a right answer says; empty: nobody asks
};

struct PromptLimits {
  std::int64_t vocab_size = 0;
  std::int64_t max_tokens = 0;  // of one prompt
};

// {"prompt": "..."} or {"tokens": [...]} or {"messages": [...]}; all else is optional.
Result<PromptLine> parse_prompt_line(std::string_view line, const std::string& where,
                                     const PromptLimits& limits);

// Every line that is not empty; one at least.
Result<std::vector<PromptLine>> parse_prompt_lines(std::string_view text, const std::string& file,
                                                   const PromptLimits& limits);

}  // namespace tidekv::cli
