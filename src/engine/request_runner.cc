#include "engine/request_runner.h"

#include <chrono>
#include <optional>
#include <string>

#include "engine/digest.h"
#include "engine/generator.h"
#include "memory/process_probe.h"

namespace tidekv {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

double seconds_since(Clock::time_point start) { return seconds_between(start, Clock::now()); }

}  // namespace

Status check_token_ids(std::span<const std::int32_t> prompt, std::int64_t vocab_size) {
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
    return does_not_fit(plan.report, resolved);
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
  Generator generator(*model.config, *context.tokenizer, request.prompt,
                      {.sampling = request.sampling,
                       .max_new_tokens = resolved.max_new_tokens,
                       .ignore_eos = request.ignore_eos});
  TIDEKV_TRY(backend->reserve(plan.memory));

  const Clock::time_point prefill_start = Clock::now();
  TIDEKV_TRY(session->prefill(request.prompt));
  report.prefill_seconds = seconds_since(prefill_start);
  report.compress_seconds = session->compress_seconds();
  report.layers = retention_of(session->cache());
  const PoolLedger after_prefill = backend->pool();
  report.prefill_transfers = transfers_since({}, after_prefill);
  const std::int64_t cache_bytes = final_cache_bytes(*session);
  if (callbacks.on_prefill_done) {
    callbacks.on_prefill_done(report.layers);
  }

  if (resolved.session.growth_len > 0) {
    TIDEKV_TRY(session->open_decode());
  }
  TIDEKV_ASSIGN(static_cast<Generation&>(report), generator.run(*session, callbacks.on_text));
  if (report.generated_tokens > 0) {
    report.ttft_seconds = seconds_between(start, generator.first_token_time());
  }

  const Accountant& accountant = backend->accountant();
  report.memory = memory_report(accountant.peak(), cache_bytes, backend->reserved_bytes(),
                                backend->pool().peak_bytes);
  report.decode_transfers = transfers_since(after_prefill, backend->pool());
  report.timeline = timeline_of(accountant);
  if (digests) {
    report.digests = digests->layers();
  }
  report.process_peak_bytes = process_peak_bytes();
  report.plan = std::move(plan.report);
  return report;
}

}  // namespace tidekv
