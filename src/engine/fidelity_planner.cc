#include "engine/fidelity_planner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/checked_math.h"
#include "engine/sweep_planner.h"

namespace tidekv {
namespace {

Error refuse(const std::string& message) { return Error{ErrorCode::kInvalidArgument, message}; }

Status check_request(const FidelityRequest& request) {
  TIDEKV_TRY(check_targets(request.targets, "fidelity"));
  if (request.num_next < 1) {
    return refuse("--next " + std::to_string(request.num_next) + ": expected 1 token or more");
  }
  return Ok{};
}

PrefillOptions common_options(const FidelityRequest& request) {
  PrefillOptions options = request.prefill;
  options.all_rows = true;  // every layer's output is compared
  options.max_new_tokens = request.num_next;
  options.memory_limit_bytes = 0;  // of all together, below
  options.chunk_len =
      options.chunk_len == 0 ? FidelityRequest::kDefaultChunkLen : options.chunk_len;
  return options;
}

// With room for the continuation, and a budget that evicts.
Result<ResolvedRequest> resolve_compared(const ModelContext& model, const PrefillOptions& options,
                                         const SweepTarget& target, std::int64_t prompt_len) {
  TIDEKV_ASSIGN(ResolvedRequest request, resolve_target(model, options, target, prompt_len));
  if (request.max_new_tokens < options.max_new_tokens) {
    return refuse("--next " + std::to_string(options.max_new_tokens) + ": behind the prompt's " +
                  std::to_string(prompt_len) + " tokens the context has room for " +
                  std::to_string(request.max_new_tokens) + "; expected at most that");
  }
  if (!request.session.method.keeps_everything() && target.budget >= prompt_len) {
    return refuse("--budget " + std::to_string(target.budget) + ": the prompt has " +
                  std::to_string(prompt_len) + " tokens, so that " + target.method +
                  " would evict nothing; expected a smaller budget or a longer prompt");
  }
  return request;
}

class FidelityPlanner {
 public:
  FidelityPlanner(const ModelContext& model, PlannedFidelity& planned)
      : model_(&model), planned_(&planned) {}

  // The reference: run 0.
  void open(SessionOptions reference) { open_run(std::move(reference)); }

  // `control`: the matched method's session, as a request of its own would have it.
  void add(const SessionOptions& target, const SessionOptions& control) {
    planned_->controls.push_back(cache_of(control));
    planned_->control_methods.emplace_back(target.method.selector->name);
    if (target.method.whole_prompt() && target.method.kv_bits == 0) {  // its own control
      planned_->caches.push_back({0, planned_->controls.back()});
    } else if (!target.method.chooses_at_layer_end() || target.method.keeps_everything()) {
      planned_->caches.push_back({open_run(target), 0});
    } else if (!layer_major_) {
      layer_major_ = open_run(target);
      planned_->caches.push_back({*layer_major_, 0});
    } else {
      planned_->caches.push_back({*layer_major_, add_cache(*layer_major_, target)});
    }
  }

  Status plan_memory() {
    for (FidelityRun& run : planned_->runs) {
      TIDEKV_ASSIGN(DryRun dry, run_dry(*model_, run.session, false));
      run.memory = std::move(dry.memory);
      planned_->peak_bytes = std::max(planned_->peak_bytes, run.memory.peak_bytes());
    }
    return Ok{};
  }

 private:
  std::size_t open_run(SessionOptions session) {
    planned_->runs.push_back({session.method.name, std::move(session), {}});
    return planned_->runs.size() - 1;
  }

  std::size_t add_cache(std::size_t run, const SessionOptions& target) {
    std::vector<CacheChoice>& more = planned_->runs[run].session.more_caches;
    more.push_back({target.method.selector, target.selector, target.quantiser, nullptr});
    return more.size();
  }

  // All options but the budget are the same for every control.
  std::size_t cache_of(const SessionOptions& control) {
    if (control.method.keeps_everything()) {
      return 0;
    }
    const std::vector<CacheChoice>& caches = planned_->runs.front().session.more_caches;
    const auto same = std::find_if(caches.begin(), caches.end(), [&](const CacheChoice& choice) {
      return choice.selector == control.method.selector &&
             choice.options.budget == control.selector.budget;
    });
    return same == caches.end() ? add_cache(0, control)
                                : static_cast<std::size_t>(same - caches.begin()) + 1;
  }

  const ModelContext* model_;
  PlannedFidelity* planned_;
  std::optional<std::size_t> layer_major_;  // the run its methods share
};

// Host memory: the reference's rows, and its distributions in double.
Result<std::int64_t> reference_bytes(const HiddenShape& hidden, std::int64_t num_next,
                                     std::int64_t vocab_size) {
  const auto rows = checked_product(
      {hidden.num_layers, hidden.prompt_len, hidden.hidden_dim, size_of(hidden.dtype)});
  const auto distributions = checked_product({num_next, vocab_size, 8});
  const auto bytes = rows && distributions ? checked_add(*rows, *distributions) : std::nullopt;
  if (!bytes) {
    return refuse("the hidden rows of " + std::to_string(hidden.prompt_len) +
                  " tokens are too many bytes to count; expected a shorter prompt");
  }
  return *bytes;
}

Status check_limit(const PlannedFidelity& planned, std::int64_t memory_limit_bytes) {
  if (memory_limit_bytes == 0 || planned.peak_bytes <= memory_limit_bytes) {
    return Ok{};
  }
  return Error{ErrorCode::kDoesNotFit,
               "the comparison needs " + std::to_string(planned.peak_bytes) + " bytes for " +
                   std::to_string(planned.hidden.prompt_len) + " prompt tokens, " +
                   std::to_string(planned.reference_bytes) +
                   " of them for the full cache's hidden rows and distributions; --memory-limit "
                   "allows " +
                   std::to_string(memory_limit_bytes) +
                   " (weights included). Expected a shorter prompt, or fewer methods or budgets"};
}

}  // namespace

Result<PlannedFidelity> plan_fidelity(const ModelContext& model, const FidelityRequest& request) {
  TIDEKV_TRY(check_request(request));
  const auto prompt_len = static_cast<std::int64_t>(request.prompt.size());
  const PrefillOptions options = common_options(request);
  TIDEKV_ASSIGN(const ResolvedRequest full,
                resolve_compared(model, options, {"full", options.budget}, prompt_len));
  PlannedFidelity planned;
  planned.chunk_len = std::min(options.chunk_len, prompt_len);
  planned.hidden = {model.config->num_layers, prompt_len, model.config->hidden_dim,
                    full.session.dtype};
  TIDEKV_ASSIGN(planned.reference_bytes,
                reference_bytes(planned.hidden, request.num_next, model.config->vocab_size));
  FidelityPlanner planner(model, planned);
  planner.open(full.session);
  for (const SweepTarget& target : request.targets) {
    TIDEKV_ASSIGN(const ResolvedRequest alone,
                  resolve_compared(model, options, target, prompt_len));
    const std::string matched(alone.session.method.selector->name);
    TIDEKV_ASSIGN(const ResolvedRequest control,
                  resolve_compared(model, options, {matched, target.budget}, prompt_len));
    planner.add(alone.session, control.session);
  }
  TIDEKV_TRY(planner.plan_memory());
  planned.peak_bytes += planned.reference_bytes;
  TIDEKV_TRY(check_limit(planned, request.prefill.memory_limit_bytes));
  return planned;
}

}  // namespace tidekv
