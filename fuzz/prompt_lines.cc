// Any bytes as a file of prompts: an error that names the file, or prompts that a model could be
// asked.
#include "prompt_lines.h"

#include "base/check.h"
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using tidekv::ChatMessage;
  const std::string text(data, data + size);
  const tidekv::cli::PromptLimits limits{.vocab_size = 259, .max_tokens = 1000};
  const auto lines = tidekv::cli::parse_prompt_lines(text, "prompts.jsonl", limits);
  if (!lines.ok()) {
    TIDEKV_CHECK(lines.error().message.starts_with("prompts.jsonl: "));
    return 0;
  }
  TIDEKV_CHECK(!lines.value().empty());
  for (const tidekv::cli::PromptLine& line : lines.value()) {
    TIDEKV_CHECK(line.where.starts_with("prompts.jsonl: line "));
    if (const auto* ids = std::get_if<std::vector<std::int32_t>>(&line.prompt)) {
      TIDEKV_CHECK(!ids->empty());
      for (const std::int32_t id : *ids) {
        TIDEKV_CHECK(id >= 0 && id < limits.vocab_size);
      }
    } else if (const auto* messages = std::get_if<std::vector<ChatMessage>>(&line.prompt)) {
      TIDEKV_CHECK(!messages->empty());
    } else {
      TIDEKV_CHECK(!std::get<std::string>(line.prompt).empty());
    }
    for (const std::string& answer : line.answers) {
      TIDEKV_CHECK(!answer.empty());
    }
  }
  return 0;
}
