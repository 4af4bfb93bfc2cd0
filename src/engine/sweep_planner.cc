#include "engine/sweep_planner.h"

#include <algorithm>
#include <string>
#include <utility>

namespace tidekv {
namespace {

// A plan of each takes a moment; and each cache takes memory.
constexpr std::size_t kMostTargets = 1000;

// What a target's cache depends on, beside the options that all targets share.
struct Choice {
  const SelectorEntry* selector = nullptr;  // null where everything is kept
  std::vector<std::int64_t> layer_budgets;
  KvQuantiser quantiser;
  friend bool operator==(const Choice&, const Choice&) = default;
};

Choice choice_of(const SessionOptions& session) {
  Choice choice;
  choice.quantiser = session.quantiser;
  choice.layer_budgets.resize(static_cast<std::size_t>(session.config->num_layers));
  session.method.selector->create(session.selector)
      ->layer_budgets(session.prompt_len, choice.layer_budgets);
  for (std::int64_t& budget : choice.layer_budgets) {
    budget = std::min(budget, session.prompt_len);
    choice.selector = budget < session.prompt_len ? session.method.selector : choice.selector;
  }
  return choice;
}

Status check_can_share(const Method& method) {
  if (method.chooses_at_layer_end()) {
    return Ok{};
  }
  return Error{ErrorCode::kInvalidArgument,
               "--method " + method.name + " runs " + std::string(method.schedule->name) +
                   " and cannot share a prefill; expected methods that choose when a layer has "
                   "seen the whole prompt"};
}

// The first target's request under the layer-major schedule, with the chunk that was asked for, or
// the largest.
ResolvedRequest layer_major_request(ResolvedRequest request) {
  SessionOptions& session = request.session;
  session.method = under_layer_major(session.method);
  request.chunk_is_auto = request.wanted_chunk_len == 0;
  session.chunk_len = std::min(kLargestAutoChunk, session.prompt_len);
  set_prompt_len(request, session.prompt_len);
  return request;
}

// With an automatic chunk the largest that fits, as for any request; 1 if none does.
Result<DryRun> dry_run_that_fits(const ModelContext& model, ResolvedRequest& request) {
  std::int64_t& chunk_len = request.session.chunk_len;
  const std::int64_t limit = request.memory_limit_bytes;
  TIDEKV_ASSIGN(DryRun dry, run_dry(model, request.session, false));
  if (!request.chunk_is_auto || limit == 0 || dry.memory.peak_bytes() <= limit) {
    return dry;
  }
  std::int64_t low = 1;  // taken even if it does not fit; the plan then says so
  std::int64_t high = chunk_len;
  while (high - low > 1) {
    chunk_len = low + (high - low) / 2;
    TIDEKV_ASSIGN(dry, run_dry(model, request.session, false));
    (dry.memory.peak_bytes() <= limit ? low : high) = chunk_len;
  }
  chunk_len = low;
  return run_dry(model, request.session, false);
}

}  // namespace

Status check_targets(std::span<const SweepTarget> targets, const std::string& what) {
  if (targets.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 what + " of nothing; expected a method and a budget at least"};
  }
  if (targets.size() > kMostTargets) {
    return Error{ErrorCode::kInvalidArgument, what + " of " + std::to_string(targets.size()) +
                                                  " methods and budgets; expected at most " +
                                                  std::to_string(kMostTargets)};
  }
  return Ok{};
}

Result<ResolvedRequest> resolve_target(const ModelContext& model, PrefillOptions options,
                                       const SweepTarget& target, std::int64_t prompt_len) {
  options.method = target.method;
  options.budget = target.budget;
  return resolve_request(model, options, prompt_len);
}

Result<PlannedSweep> plan_sweep(const ModelContext& model, const PrefillOptions& options,
                                std::span<const SweepTarget> targets, std::int64_t prompt_len) {
  TIDEKV_TRY(check_targets(targets, "a sweep"));
  PlannedSweep planned;
  SweepPlan& report = planned.report;
  std::vector<Choice> choices;
  for (const SweepTarget& target : targets) {
    TIDEKV_ASSIGN(const ResolvedRequest alone, resolve_target(model, options, target, prompt_len));
    if (targets.size() > 1) {
      TIDEKV_TRY(check_can_share(alone.session.method));
    }
    TIDEKV_ASSIGN(Plan plan, make_plan(model, alone, false));
    if (alone.pool_limit_bytes > 0 && plan.report.memory.pool_bytes > alone.pool_limit_bytes) {
      return does_not_fit(plan.report, alone);
    }
    report.alone.push_back(std::move(plan.report));
    Choice choice = choice_of(alone.session);
    const auto same = std::find(choices.begin(), choices.end(), choice);
    report.cache_of.push_back(static_cast<std::size_t>(same - choices.begin()));
    if (same != choices.end()) {
      continue;
    }
    choices.push_back(std::move(choice));
    if (choices.size() == 1) {
      const bool shares = alone.session.method.chooses_at_layer_end();
      planned.request = shares ? layer_major_request(alone) : alone;
    } else {
      planned.request.session.more_caches.push_back({alone.session.method.selector,
                                                     alone.session.selector,
                                                     alone.session.quantiser, nullptr});
    }
  }
  TIDEKV_ASSIGN(DryRun dry, dry_run_that_fits(model, planned.request));
  const ResolvedRequest& request = planned.request;
  planned.memory = std::move(dry.memory);
  report.prompt_len = prompt_len;
  report.chunk_len = request.session.chunk_len;
  report.max_new_tokens = request.max_new_tokens;
  report.num_caches = choices.size();
  report.memory = memory_report(planned.memory.peak, dry.final_cache_bytes,
                                planned.memory.arena_bytes, planned.memory.pool_bytes);
  report.fits =
      request.memory_limit_bytes == 0 || report.memory.peak_bytes <= request.memory_limit_bytes;
  return planned;
}

bool can_share_prefill(const std::string& method) {
  const Result<Method> found = find_method(method);
  return found.ok() && found.value().chooses_at_layer_end();
}

Error does_not_fit(const SweepPlan& plan, std::int64_t memory_limit_bytes) {
  return Error{ErrorCode::kDoesNotFit,
               "the sweep needs " + std::to_string(plan.memory.peak_bytes) + " bytes for " +
                   std::to_string(plan.prompt_len) + " prompt tokens and " +
                   std::to_string(plan.num_caches) + " caches at chunk " +
                   std::to_string(plan.chunk_len) + "; --memory-limit allows " +
                   std::to_string(memory_limit_bytes) +
                   " (weights included). Expected fewer methods or budgets at once, or smaller "
                   "ones"};
}

}  // namespace tidekv
