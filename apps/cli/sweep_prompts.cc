#include "sweep_prompts.h"

#include <utility>

#include "prompt.h"
#include "prompt_lines.h"

namespace tidekv::cli {
namespace {

constexpr std::int64_t kMaxFileBytes = std::int64_t{1} << 30;

class PromptTokens {
 public:
  explicit PromptTokens(const Engine& engine) : engine_(&engine) {}

  Result<std::vector<std::int32_t>> of(const PromptLine& line) const {
    if (const auto* text = std::get_if<std::string>(&line.prompt)) {
      return engine_->tokenize(*text + line.prefix, {});
    }
    std::vector<std::int32_t> ids;
    if (const auto* messages = std::get_if<std::vector<ChatMessage>>(&line.prompt)) {
      TIDEKV_ASSIGN(ids, engine_->tokenize_chat(*messages));
    } else {
      ids = std::get<std::vector<std::int32_t>>(line.prompt);
    }
    TIDEKV_ASSIGN(const auto begun, engine_->tokenize(line.prefix, {.add_bos = false}));
    ids.insert(ids.end(), begun.begin(), begun.end());
    return ids;
  }

 private:
  const Engine* engine_;
};

}  // namespace

Result<std::vector<SweepPrompt>> read_sweep_prompts(const Engine& engine, const std::string& path) {
  TIDEKV_ASSIGN(const std::string text,
                read_text_file(path, {kMaxFileBytes, "a file of prompts holds at most"}));
  const ModelInfo& model = engine.model();
  TIDEKV_ASSIGN(std::vector<PromptLine> lines,
                parse_prompt_lines(text, path == "-" ? "stdin" : path,
                                   {model.vocab_size, model.max_positions}));
  const PromptTokens tokens(engine);
  std::vector<SweepPrompt> prompts;
  prompts.reserve(lines.size());
  for (PromptLine& line : lines) {
    Result<std::vector<std::int32_t>> ids = tokens.of(line);
    if (!ids.ok()) {
      return Error{ids.error().code, line.where + ": " + ids.error().message};
    }
    prompts.push_back({std::move(line.where), std::move(line.id), std::move(ids).value(),
                       std::move(line.answers)});
  }
  return prompts;
}

}  // namespace tidekv::cli
