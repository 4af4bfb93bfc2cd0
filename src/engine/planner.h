// Plans a request by running its real schedule on the dry-run backend: plan equals run, to the
// byte.
#pragma once

#include <cstdint>

#include "backend/registry.h"
#include "engine/session.h"
#include "memory/formula.h"
#include "tidekv/memory_report.h"
#include "tidekv/options.h"

namespace tidekv {

// The model a request is for, and what will run it. References outlive it.
struct ModelContext {
  const ModelConfig* config = nullptr;
  const HostModel* weights = nullptr;
  const BackendEntry* backend = nullptr;
  int num_threads = 1;
};

inline constexpr std::int64_t kLargestAutoChunk = 2048;

// A request with every choice made.
struct ResolvedRequest {
  SessionOptions session;  // without probe and progress
  std::int64_t budget = 0;
  std::int64_t context_len = 0;
  std::int64_t wanted_new_tokens = 0;  // as asked; -1: as many as the context leaves
  std::int64_t wanted_chunk_len = 0;   // cut to the prompt; 0: automatic
  std::int64_t wanted_key_block_len = 0;
  std::int64_t max_new_tokens = 0;  // cut to what the context leaves
  std::int64_t memory_limit_bytes = 0;
  std::int64_t pool_limit_bytes = 0;
  bool chunk_is_auto = false;
};

// Checks options against the model and fills in what was left open. Errors name the flag, or both
// numbers when the prompt is longer than the context.
Result<ResolvedRequest> resolve_request(const ModelContext& model, const PrefillOptions& options,
                                        std::int64_t prompt_len);

// Gives the request another prompt length, and with it the room for generated tokens, and the
// chunk of a whole-prompt method.
void set_prompt_len(ResolvedRequest& request, std::int64_t prompt_len);

// What the schedule does to memory, and what the first cache holds when prefill ends.
struct DryRun {
  MemoryPlan memory;
  std::int64_t final_cache_bytes = 0;  // of all caches
  TransferReport prefill_transfers;
  std::vector<LayerRetention> layers;
  std::vector<TimelineEntry> timeline;
};

// Walks a session's schedule from prefill to the opening of decode.
Result<DryRun> run_dry(const ModelContext& model, const SessionOptions& options,
                       bool with_timeline);

struct Plan {
  MemoryPlan memory;
  PlanReport report;
};

Result<Plan> make_plan(const ModelContext& model, const ResolvedRequest& request,
                       bool with_timeline);

// The peak in closed form, for checking the ledger, and the paper's terms of it.
FormulaReport formula_report(const ModelContext& model, const ResolvedRequest& request);

// Whether a request keeps to its limits, by the closed form: for searches.
bool fits_by_formula(const ModelContext& model, const ResolvedRequest& request);

// Fills the parts of a report that come from a ledger.
MemoryReport memory_report(const ComponentBytes& peak, std::int64_t final_cache_bytes,
                           std::int64_t reserved_bytes, std::int64_t pool_bytes = 0);
std::vector<TimelineEntry> timeline_of(const Accountant& accountant);
std::vector<LayerRetention> retention_of(const CacheManager& cache);
// What was moved after `before`.
TransferReport transfers_since(const PoolLedger& before, const PoolLedger& now);
// Of all caches, on the device.
std::int64_t final_cache_bytes(const Session& session);

// The error of a request that needs more than it may have.
Error does_not_fit(const PlanReport& report, const ResolvedRequest& request);

}  // namespace tidekv
