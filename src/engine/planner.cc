#include "engine/planner.h"

#include <algorithm>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace tidekv {
namespace {

constexpr std::int64_t kMaxTimelineEvents = std::int64_t{1} << 20;

// Takes the steps that allocate otherwise than those before them. Returns how many events of the
// ledger the steps after them will make.
Result<std::int64_t> plan_steps(Session& session, const Accountant& accountant,
                                std::int64_t num_steps) {
  const std::int64_t planned = session.steps_to_plan();
  std::int64_t before = 0;
  for (std::int64_t step = 0; step < planned; ++step) {
    before = accountant.num_events();
    TIDEKV_TRY(session.decode(0));
  }
  return planned == 0 ? 0 : (num_steps - planned) * (accountant.num_events() - before);
}

// A limit of 0 is none.
bool within(std::int64_t bytes, std::int64_t limit) { return limit == 0 || bytes <= limit; }

// Walks the session's schedule; `trace` is complete when this has returned.
Status walk_schedule(const ModelContext& model, const SessionOptions& options, bool with_timeline,
                     std::vector<TracedAllocation>* trace, DryRun* result) {
  const BackendOptions backend_options{.timeline_capacity = with_timeline ? kMaxTimelineEvents : 0};
  const auto backend = create_dry_run(*model.backend, model.num_threads, backend_options,
                                      model.config->head_dim, trace);
  TIDEKV_ASSIGN(const auto session, Session::create(*backend, options));
  const std::vector<std::int32_t> prompt(static_cast<std::size_t>(options.prompt_len));
  TIDEKV_TRY(session->prefill(prompt));
  result->final_cache_bytes = final_cache_bytes(*session);
  result->prefill_transfers = transfers_since({}, backend->pool());
  result->memory.pool_bytes = backend->pool().peak_bytes;
  result->layers = retention_of(session->cache());
  const Accountant& accountant = backend->accountant();
  std::int64_t later_events = 0;
  if (options.growth_len > 0) {
    TIDEKV_TRY(session->open_decode());
    TIDEKV_ASSIGN(later_events, plan_steps(*session, accountant, options.growth_len));
  }
  result->memory.num_timeline_events = accountant.num_events() + later_events;
  result->memory.peak = accountant.peak();
  result->timeline = timeline_of(accountant);
  return Ok{};
}

FormulaInput formula_input(const ModelContext& model, const ResolvedRequest& request,
                           std::span<const std::int64_t> layer_budgets) {
  const ModelConfig& config = *model.config;
  const SessionOptions& session = request.session;
  const bool whole = session.method.whole_prompt();
  FormulaInput in;
  in.num_layers = config.num_layers;
  in.hidden_dim = config.hidden_dim;
  in.ffn_dim = config.ffn_dim;
  in.num_q_heads = config.num_q_heads;
  in.num_kv_heads = config.num_kv_heads;
  in.head_dim = config.head_dim;
  in.vocab_size = config.vocab_size;
  in.element_bytes = size_of(session.dtype);
  in.weights_bytes = weights_bytes(*model.weights);
  in.panel_bytes = model.backend->workspace_bytes(model.num_threads, config.head_dim);
  in.prompt_len = session.prompt_len;
  in.chunk_len = session.chunk_len;
  const std::int64_t own_tile = whole ? session.prompt_len : PrefillContext::kMlpTileLen;
  in.mlp_tile_len = session.mlp_tile_len > 0 ? session.mlp_tile_len : own_tile;
  in.mlp_buffers = whole ? 3 : 1;
  in.stages_kv = whole;
  in.key_block_len = session.key_block_len;
  const ScoreRecipe recipe =
      session.method.selector->create(session.selector)->score_recipe(session.prompt_len);
  in.window_len = recipe.window_len;
  in.num_sinks = recipe.num_sinks;
  in.num_recent = recipe.num_recent;
  in.kernel_len = recipe.pool.kernel_len;
  in.unit_len = recipe.unit_len;
  in.heads_share = recipe.even_share < 1;
  in.counts_heads = recipe.even_share < 1 && !recipe.even_share_is_floor;
  in.growth_len = session.growth_len;
  in.all_rows = session.all_rows;
  in.masks = session.attention != AttentionKind::kFlash;
  in.holds_scores = session.attention == AttentionKind::kEager;
  in.by_chunk = session.method.by_chunk();
  in.cuts_in_decode = session.method.cuts_in_decode;
  in.expects_queries = recipe.observes_all();
  in.key_directions = recipe.source == ScoreSource::kKeyDifference;
  in.code_bits = session.quantiser.bits;
  in.code_group_len = session.quantiser.group_len;
  in.residual_len = session.quantiser.residual_len;
  in.offloads = session.method.offloads;
  in.layer_budgets = layer_budgets;
  return in;
}

std::vector<std::int64_t> layer_budgets(const SessionOptions& session) {
  std::vector<std::int64_t> budgets(static_cast<std::size_t>(session.config->num_layers));
  session.method.selector->create(session.selector)->layer_budgets(session.prompt_len, budgets);
  return budgets;
}

}  // namespace

FormulaReport formula_report(const ModelContext& model, const ResolvedRequest& request) {
  const std::vector<std::int64_t> budgets = layer_budgets(request.session);
  const FormulaInput in = formula_input(model, request, budgets);
  const Eq9Terms eq9 = eq9_terms(in);
  FormulaReport report;
  report.closed_form_peak_bytes = closed_form_peak_bytes(in);
  report.closed_form_pool_bytes = closed_form_pool_bytes(in);
  report.eq9_active_kv_bytes = eq9.active_kv_bytes;
  report.eq9_hidden_bytes = eq9.hidden_bytes;
  report.eq9_activation_bytes = eq9.activation_bytes;
  report.eq9_compact_bytes = eq9.compact_bytes;
  report.eq9_temp_bytes = eq9.temp_bytes;
  report.eq9_total_bytes = eq9.total();
  return report;
}

namespace {

// The largest prompt within the context that fits the limits, with the chunk the user fixed or, if
// automatic, with any chunk. The peak grows with the prompt.
std::int64_t largest_fitting_prompt(const ModelContext& model, ResolvedRequest request) {
  if (request.chunk_is_auto) {
    request.session.chunk_len = 1;
  }
  const auto fits = [&](std::int64_t prompt_len) {
    set_prompt_len(request, prompt_len);
    return fits_by_formula(model, request);
  };
  std::int64_t low = 0;
  std::int64_t high = request.context_len + 1;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

}  // namespace

bool fits_by_formula(const ModelContext& model, const ResolvedRequest& request) {
  const std::vector<std::int64_t> budgets = layer_budgets(request.session);
  const FormulaInput in = formula_input(model, request, budgets);
  return within(closed_form_peak_bytes(in), request.memory_limit_bytes) &&
         within(closed_form_pool_bytes(in), request.pool_limit_bytes);
}

Result<DryRun> run_dry(const ModelContext& model, const SessionOptions& options,
                       bool with_timeline) {
  std::vector<TracedAllocation> trace;
  DryRun result;
  TIDEKV_TRY(walk_schedule(model, options, with_timeline, &trace, &result));
  MemoryPlan placed = place_allocations(trace);
  result.memory.allocations = std::move(placed.allocations);
  result.memory.arena_bytes = placed.arena_bytes;
  return result;
}

Result<Plan> make_plan(const ModelContext& model, const ResolvedRequest& request,
                       bool with_timeline) {
  TIDEKV_ASSIGN(DryRun dry, run_dry(model, request.session, with_timeline));
  Plan plan;
  plan.memory = std::move(dry.memory);

  PlanReport& report = plan.report;
  report.method = request.session.method.name;
  report.prompt_len = request.session.prompt_len;
  report.chunk_len = request.session.chunk_len;
  report.budget = request.budget;
  report.context_len = request.context_len;
  report.max_new_tokens = request.max_new_tokens;
  report.kv_group_len = request.session.quantiser.group_len;
  report.kv_residual_len = request.session.quantiser.residual_len;
  report.memory = memory_report(plan.memory.peak, dry.final_cache_bytes, plan.memory.arena_bytes,
                                plan.memory.pool_bytes);
  report.prefill_transfers = dry.prefill_transfers;
  report.formula = formula_report(model, request);
  report.layers = std::move(dry.layers);
  report.timeline = std::move(dry.timeline);
  if (request.memory_limit_bytes > 0 || request.pool_limit_bytes > 0) {
    report.fits = within(report.memory.peak_bytes, request.memory_limit_bytes) &&
                  within(report.memory.pool_bytes, request.pool_limit_bytes);
    report.max_prompt_len = largest_fitting_prompt(model, request);
  }
  return plan;
}

MemoryReport memory_report(const ComponentBytes& peak, std::int64_t final_cache_bytes,
                           std::int64_t reserved_bytes, std::int64_t pool_bytes) {
  MemoryReport report;
  report.pool_bytes = pool_bytes;
  report.peak_bytes = peak.total();
  report.weights_bytes = peak[Component::kWeights];
  report.final_cache_bytes = final_cache_bytes;
  report.transient_bytes = report.peak_bytes - report.weights_bytes - final_cache_bytes;
  report.reserved_bytes = reserved_bytes;
  for (std::size_t index = 0; index < kNumComponents; ++index) {
    const auto component = static_cast<Component>(index);
    report.components.emplace_back(name_of(component), peak[component]);
  }
  return report;
}

std::vector<TimelineEntry> timeline_of(const Accountant& accountant) {
  std::vector<TimelineEntry> entries;
  entries.reserve(accountant.timeline().size());
  for (const TimelineEvent& event : accountant.timeline()) {
    entries.push_back({std::string(name_of(event.stage)), event.layer,
                       std::string(name_of(event.component)), event.delta_bytes, event.live_bytes});
  }
  return entries;
}

std::vector<LayerRetention> retention_of(const CacheManager& cache) {
  std::vector<LayerRetention> layers;
  for (std::int64_t layer = 0; layer < cache.num_committed(); ++layer) {
    const std::span<const std::int64_t> lens = cache.layer(layer).retained_lens();
    LayerRetention retention;
    retention.kept = cache.layer(layer).total_retained() / cache.shape().num_kv_heads;
    retention.total = cache.shape().prompt_len;
    retention.bits = cache.shape().quantiser.bits;
    if (std::adjacent_find(lens.begin(), lens.end(), std::not_equal_to<>()) != lens.end()) {
      retention.kept_by_head.assign(lens.begin(), lens.end());
    }
    layers.push_back(std::move(retention));
  }
  return layers;
}

TransferReport transfers_since(const PoolLedger& before, const PoolLedger& now) {
  const Transfers down = now.down - before.down;
  const Transfers up = now.up - before.up;
  return {down.bytes, down.count, up.bytes, up.count};
}

std::int64_t final_cache_bytes(const Session& session) {
  std::int64_t bytes = 0;
  for (std::size_t index = 0; index < session.num_caches(); ++index) {
    const CacheManager& cache = session.cache(index);
    for (std::int64_t layer = 0; layer < cache.num_committed(); ++layer) {
      cache.layer(layer).for_each_view([&]<typename View>(View rows) {
        bytes += std::is_same_v<View, DeviceView> ? rows.num_bytes() : 0;
      });
    }
  }
  return bytes;
}

Error does_not_fit(const PlanReport& report, const ResolvedRequest& request) {
  const bool device_fits = within(report.memory.peak_bytes, request.memory_limit_bytes);
  const std::string needed =
      device_fits ? std::to_string(report.memory.pool_bytes) + " bytes of the offload pool"
                  : std::to_string(report.memory.peak_bytes) + " bytes";
  const std::string allowed =
      device_fits ? "--pool-limit allows " + std::to_string(request.pool_limit_bytes)
                  : "--memory-limit allows " + std::to_string(request.memory_limit_bytes) +
                        " (weights included)";
  return Error{ErrorCode::kDoesNotFit, "the plan needs " + needed + " for " +
                                           std::to_string(report.prompt_len) +
                                           " prompt tokens with --method " + report.method +
                                           " at chunk " + std::to_string(report.chunk_len) + "; " +
                                           allowed + ". The largest prompt that fits is " +
                                           std::to_string(report.max_prompt_len) + " tokens"};
}

}  // namespace tidekv
