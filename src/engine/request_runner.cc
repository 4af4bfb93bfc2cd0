#include "engine/request_runner.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "engine/digest.h"
#include "engine/sampler.h"
#include "memory/process_probe.h"

namespace tidekv {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Status check_token_ids(const std::vector<std::int32_t>& prompt, std::int64_t vocab_size) {
  for (std::size_t index = 0; index < prompt.size(); ++index) {
    if (prompt[index] < 0 || prompt[index] >= vocab_size) {
      return Error{ErrorCode::kInvalidArgument, "prompt token " + std::to_string(index) + " is " +
                                                    std::to_string(prompt[index]) +
                                                    "; the vocabulary has ids 0 to " +
                                                    std::to_string(vocab_size - 1)};
    }
  }
  return Ok{};
}

// The token loop: sample, show, feed back. Owns nothing of the prefill.
class Generator {
 public:
  Generator(const RunContext& context, const Request& request, const Callbacks& callbacks,
            std::int64_t max_new_tokens)
      : context_(&context),
        request_(&request),
        callbacks_(&callbacks),
        max_new_tokens_(max_new_tokens),
        sampler_(request.sampling, context.model.config->vocab_size),
        detokenizer_(*context.tokenizer) {
    history_.reserve(request.prompt.size() + static_cast<std::size_t>(max_new_tokens));
    history_ = request.prompt;
  }

  // From the logits of the prompt's last token to the end of generation.
  Status run(Session& session, Clock::time_point request_start, RunReport& report) {
    report.stop_reason = "length";
    for (std::int64_t count = 0; count < max_new_tokens_; ++count) {
      TIDEKV_ASSIGN(const std::int32_t token, sampler_.sample(session.logits(), history_));
      if (count == 0) {
        report.ttft_seconds = seconds_since(request_start);
      }
      report.tokens.push_back(token);
      history_.push_back(token);
      if (is_end(token) && !request_->ignore_eos) {
        report.stop_reason = "eos";
        break;
      }
      show(detokenizer_.next(token), report);
      if (count + 1 == max_new_tokens_) {
        break;
      }
      const Clock::time_point step_start = Clock::now();
      const Status decoded = session.decode(token);
      report.decode_steps_seconds += seconds_since(step_start);
      if (!decoded.ok() && decoded.error().code == ErrorCode::kCancelled) {
        report.stop_reason = "cancelled";
        break;
      }
      TIDEKV_TRY(decoded);
    }
    show(detokenizer_.finish(), report);
    report.generated_tokens = static_cast<std::int64_t>(report.tokens.size());
    return Ok{};
  }

 private:
  bool is_end(std::int32_t token) const {
    const auto& ends = context_->model.config->eos_token_ids;
    return std::find(ends.begin(), ends.end(), token) != ends.end();
  }
  void show(const std::string& text, RunReport& report) const {
    if (text.empty()) {
      return;
    }
    report.text += text;
    if (callbacks_->on_text) {
      callbacks_->on_text(text);
    }
  }

  const RunContext* context_;
  const Request* request_;
  const Callbacks* callbacks_;
  std::int64_t max_new_tokens_;
  Sampler sampler_;
  Detokenizer detokenizer_;
  std::vector<std::int32_t> history_;
};

std::function<void(const PrefillProgress&)> progress_callback(const Callbacks& callbacks,
                                                              std::int64_t prompt_len) {
  if (!callbacks.on_progress) {
    return {};
  }
  return [&callbacks, prompt_len, start = Clock::now()](const PrefillProgress& progress) {
    callbacks.on_progress({.layer = progress.layer,
                           .num_layers = progress.num_layers,
                           .fraction = progress.fraction,
                           .seconds = seconds_since(start),
                           .prompt_len = prompt_len});
  };
}

}  // namespace

Result<RunReport> run_request(const RunContext& context, const Request& request,
                              const Callbacks& callbacks) {
  const Clock::time_point start = Clock::now();
  const ModelContext& model = context.model;
  const auto prompt_len = static_cast<std::int64_t>(request.prompt.size());
  TIDEKV_TRY(check_sampling_options(request.sampling));
  TIDEKV_TRY(check_token_ids(request.prompt, model.config->vocab_size));
  TIDEKV_ASSIGN(ResolvedRequest resolved, resolve_request(model, request.prefill, prompt_len));
  TIDEKV_ASSIGN(Plan plan, make_plan(model, resolved, false));
  if (!plan.report.fits) {
    return does_not_fit(plan.report, resolved.memory_limit_bytes);
  }

  RunReport report;
  const std::int64_t timeline_capacity = request.timeline ? plan.memory.num_timeline_events : 0;
  const auto backend = model.backend->create({.pool = context.pool,
                                              .timeline_capacity = timeline_capacity,
                                              .fail_allocation = context.fail_allocation,
                                              .cancel = callbacks.cancel});
  std::optional<DigestProbe> digests;
  if (request.digests) {
    digests.emplace(*backend, *model.config);
  }
  resolved.session.probe = digests ? &*digests : nullptr;
  resolved.session.on_progress = progress_callback(callbacks, prompt_len);
  TIDEKV_ASSIGN(const auto session, Session::create(*backend, resolved.session));
  Generator generator(context, request, callbacks, resolved.max_new_tokens);
  TIDEKV_TRY(backend->reserve(plan.memory));

  const Clock::time_point prefill_start = Clock::now();
  TIDEKV_TRY(session->prefill(request.prompt));
  report.prefill_seconds = seconds_since(prefill_start);
  report.compress_seconds = session->compress_seconds();
  report.layers = retention_of(session->cache());
  const std::int64_t cache_bytes = final_cache_bytes(session->cache());
  if (callbacks.on_prefill_done) {
    callbacks.on_prefill_done(report.layers);
  }

  const Clock::time_point decode_start = Clock::now();
  if (resolved.session.growth_len > 0) {
    TIDEKV_TRY(session->open_decode());
  }
  TIDEKV_TRY(generator.run(*session, start, report));
  report.decode_seconds = seconds_since(decode_start);

  const Accountant& accountant = backend->accountant();
  report.memory = memory_report(accountant.peak(), cache_bytes, backend->reserved_bytes());
  report.timeline = timeline_of(accountant);
  if (digests) {
    report.digests = digests->layers();
  }
  report.process_peak_bytes = process_peak_bytes();
  report.plan = std::move(plan.report);
  return report;
}

}  // namespace tidekv
