#include "engine/sweep_runner.h"

#include <chrono>
#include <deque>
#include <utility>

#include "engine/digest.h"
#include "engine/generator.h"
#include "engine/sweep_planner.h"
#include "memory/process_probe.h"

namespace tidekv {
namespace {

using Clock = std::chrono::steady_clock;

// One probe for each cache, if digests are asked for: each sees what it would see alone.
std::deque<DigestProbe> add_probes(Backend& backend, SessionOptions& session) {
  std::deque<DigestProbe> probes;
  probes.emplace_back(backend, *session.config);
  session.probe = &probes.back();
  for (CacheChoice& choice : session.more_caches) {
    probes.emplace_back(backend, *session.config);
    choice.probe = &probes.back();
  }
  return probes;
}

// What every cache generates. Caches stay until the end: all of them were live when prefill
// ended, so that releasing one sooner would not lower the peak.
Result<std::vector<TargetReport>> continue_caches(const RunContext& context,
                                                  const SweepRequest& request,
                                                  const Callbacks& callbacks,
                                                  std::int64_t max_new_tokens, Session& session) {
  const GeneratorOptions options{.sampling = with_own_seed(request.sampling),
                                 .max_new_tokens = max_new_tokens,
                                 .ignore_eos = request.ignore_eos};
  std::vector<TargetReport> reports(session.num_caches());
  for (std::size_t cache = 0; cache < reports.size(); ++cache) {
    if (callbacks.on_cache) {
      callbacks.on_cache(cache, reports.size());
    }
    session.continue_from(cache);
    Generator generator(*context.model.config, *context.tokenizer, request.prompt, options);
    TIDEKV_ASSIGN(static_cast<Generation&>(reports[cache]), generator.run(session, {}));
    if (reports[cache].stop_reason == "cancelled") {
      return Error{ErrorCode::kCancelled, "cancelled during decode"};
    }
    reports[cache].layers = retention_of(session.cache(cache));
  }
  return reports;
}

}  // namespace

Result<SweepReport> run_sweep(const RunContext& context, const SweepRequest& request,
                              const Callbacks& callbacks) {
  const ModelContext& model = context.model;
  const auto prompt_len = static_cast<std::int64_t>(request.prompt.size());
  TIDEKV_TRY(check_sampling_options(request.sampling));
  TIDEKV_TRY(check_token_ids(request.prompt, model.config->vocab_size));
  TIDEKV_ASSIGN(PlannedSweep planned,
                plan_sweep(model, request.prefill, request.targets, prompt_len));
  if (!planned.report.fits) {
    return does_not_fit(planned.report, request.prefill.memory_limit_bytes);
  }

  SessionOptions& options = planned.request.session;
  const auto backend = model.backend->create({.pool = context.pool,
                                              .fail_allocation = context.fail_allocation,
                                              .cancel = callbacks.cancel});
  std::deque<DigestProbe> probes;
  if (request.digests) {
    probes = add_probes(*backend, options);
  }
  options.on_progress = progress_callback(callbacks, prompt_len);
  TIDEKV_ASSIGN(const auto session, Session::create(*backend, options));
  TIDEKV_TRY(backend->reserve(planned.memory));

  SweepReport report;
  const Clock::time_point start = Clock::now();
  TIDEKV_TRY(session->prefill(request.prompt));
  report.prefill_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  report.compress_seconds = session->compress_seconds();
  const std::int64_t cache_bytes = final_cache_bytes(*session);
  if (options.growth_len > 0) {
    TIDEKV_TRY(session->open_decode());
  }
  TIDEKV_ASSIGN(
      std::vector<TargetReport> caches,
      continue_caches(context, request, callbacks, planned.request.max_new_tokens, *session));
  for (std::size_t cache = 0; cache < probes.size(); ++cache) {
    caches[cache].digests = probes[cache].layers();
  }
  for (const std::size_t cache : planned.report.cache_of) {
    report.targets.push_back(caches[cache]);
    report.targets.back().prefill_seconds = report.prefill_seconds;
  }
  report.memory = memory_report(backend->accountant().peak(), cache_bytes,
                                backend->reserved_bytes(), backend->pool().peak_bytes);
  report.process_peak_bytes = process_peak_bytes();
  report.plan = std::move(planned.report);
  return report;
}

}  // namespace tidekv
