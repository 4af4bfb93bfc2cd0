#include "engine/generator.h"

#include <algorithm>
#include <utility>

namespace tidekv {
namespace {

double seconds_since(Generator::Clock::time_point start) {
  return std::chrono::duration<double>(Generator::Clock::now() - start).count();
}

}  // namespace

Generator::Generator(const ModelConfig& config, const Tokenizer& tokenizer,
                     std::span<const std::int32_t> prompt, const GeneratorOptions& options)
    : config_(&config),
      options_(options),
      sampler_(options.sampling, config.vocab_size),
      detokenizer_(tokenizer) {
  history_.reserve(prompt.size() + static_cast<std::size_t>(options.max_new_tokens));
  history_.assign(prompt.begin(), prompt.end());
}

Result<Generation> Generator::run(Session& session,
                                  const std::function<void(std::string_view)>& on_text) {
  const Clock::time_point start = Clock::now();
  first_token_time_ = start;
  Generation generation;
  const auto show = [&](const std::string& text) {
    generation.text += text;
    if (on_text && !text.empty()) {
      on_text(text);
    }
  };
  generation.stop_reason = "length";
  for (std::int64_t count = 0; count < options_.max_new_tokens; ++count) {
    TIDEKV_ASSIGN(const std::int32_t token, sampler_.sample(session.logits(), history_));
    if (count == 0) {
      first_token_time_ = Clock::now();
    }
    generation.tokens.push_back(token);
    history_.push_back(token);
    if (is_end(token) && !options_.ignore_eos) {
      generation.stop_reason = "eos";
      break;
    }
    show(detokenizer_.next(token));
    if (count + 1 == options_.max_new_tokens) {
      break;
    }
    const Clock::time_point step_start = Clock::now();
    const Status decoded = session.decode(token);
    generation.decode_steps_seconds += seconds_since(step_start);
    if (!decoded.ok() && decoded.error().code == ErrorCode::kCancelled) {
      generation.stop_reason = "cancelled";
      break;
    }
    TIDEKV_TRY(decoded);
  }
  show(detokenizer_.finish());
  generation.generated_tokens = static_cast<std::int64_t>(generation.tokens.size());
  generation.decode_seconds = seconds_since(start);
  return generation;
}

bool Generator::is_end(std::int32_t token) const {
  const auto& ends = config_->eos_token_ids;
  return std::find(ends.begin(), ends.end(), token) != ends.end();
}

}  // namespace tidekv
