// The token loop of a request: sample, show, feed back. Owns nothing of the prefill.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/sampler.h"
#include "engine/session.h"
#include "text/tokenizer.h"
#include "tidekv/memory_report.h"
#include "tidekv/options.h"

namespace tidekv {

struct GeneratorOptions {
  SamplingOptions sampling;
  std::int64_t max_new_tokens = 0;
  bool ignore_eos = false;
};

class Generator {
 public:
  using Clock = std::chrono::steady_clock;

  // `config` and `tokenizer` outlive the generator; `prompt` is what the session prefilled.
  Generator(const ModelConfig& config, const Tokenizer& tokenizer,
            std::span<const std::int32_t> prompt, const GeneratorOptions& options);

  // From the logits of the prompt's last token to the end of generation, once. `on_text` may be
  // empty. Stopped by the cancel flag it returns what was generated, "cancelled" for the reason.
  Result<Generation> run(Session& session, const std::function<void(std::string_view)>& on_text);
  // When run() had the first token; if there was none, when it began.
  Clock::time_point first_token_time() const { return first_token_time_; }

 private:
  bool is_end(std::int32_t token) const;

  const ModelConfig* config_;
  GeneratorOptions options_;
  Sampler sampler_;
  Detokenizer detokenizer_;
  std::vector<std::int32_t> history_;
  Clock::time_point first_token_time_;
};

}  // namespace tidekv
