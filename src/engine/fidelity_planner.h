// Plans a fidelity comparison: which prefills there are, what each makes, and what all need.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/hidden_rows.h"
#include "engine/planner.h"
#include "tidekv/fidelity.h"

namespace tidekv {

// One prefill, and every cache it makes.
struct FidelityRun {
  std::string method;      // of its first cache
  SessionOptions session;  // without probe and progress
  MemoryPlan memory;
};

struct FidelityCache {
  std::size_t run = 0;
  std::size_t cache = 0;
};

struct PlannedFidelity {
  // Number 0 is the reference's: its first cache is the full one, the others those of methods that
  // run the whole prompt at once, the controls among them. Methods that cut at a layer's end in
  // layer-major order share another. Every other method has one of its own.
  std::vector<FidelityRun> runs;
  std::vector<FidelityCache> caches;         // of each target
  std::vector<std::size_t> controls;         // of each target: its control's cache in run 0
  std::vector<std::string> control_methods;  // of each target
  HiddenShape hidden;
  std::int64_t chunk_len = 0;
  std::int64_t reference_bytes = 0;
  std::int64_t peak_bytes = 0;
};

// Checks every target as a request of its own, that it evicts something if it can, and the memory
// limit. Errors name the flag or the method.
Result<PlannedFidelity> plan_fidelity(const ModelContext& model, const FidelityRequest& request);

}  // namespace tidekv
