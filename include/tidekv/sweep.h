// One prefill for many caches: a prompt, and the methods and budgets to compare on it.
//
// At a layer's end every target takes its share of the same full KV, so the prompt is run once and
// not once for each. What a target retains and generates is what a request of its own would, bit
// for bit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tidekv/memory_report.h"
#include "tidekv/options.h"
#include "tidekv/result.h"

namespace tidekv {

// Whether a method can share a prefill: if it chooses at a layer's end, as delayed and matched ones
// do, which retain the same, and `full`. Others sweep alone. False for a name no method has.
bool can_share_prefill(const std::string& method);

struct SweepTarget {
  std::string method = "tidekv-snap";
  std::int64_t budget = 4096;
};

struct SweepRequest {
  std::vector<std::int32_t> prompt;
  PrefillOptions prefill;  // but for method and budget, which the targets name
  std::vector<SweepTarget> targets;
  SamplingOptions sampling;  // of every target alike; of seed -1 one is drawn for all
  bool ignore_eos = false;
  bool digests = false;
};

struct SweepPlan {
  std::int64_t prompt_len = 0;
  std::int64_t chunk_len = 0;
  std::int64_t max_new_tokens = 0;
  bool fits = true;                   // within the memory limit, if there is one
  MemoryReport memory;                // of the sweep: all its caches live from prefill to the end
  std::vector<PlanReport> alone;      // of each target: what a request of its own needs
  std::vector<std::size_t> cache_of;  // of each target: its cache; targets that choose alike share
  std::size_t num_caches = 0;
};

// What one target kept and generated.
struct TargetReport : Generation {
  std::vector<LayerRetention> layers;
  std::vector<LayerDigest> digests;  // if asked
  double prefill_seconds = 0;        // of the prefill it had a share in
};

struct SweepReport {
  SweepPlan plan;       // made before the run
  MemoryReport memory;  // measured by the ledger
  double prefill_seconds = 0;
  double compress_seconds = 0;  // of it, for all caches together
  std::int64_t process_peak_bytes = 0;
  std::vector<TargetReport> targets;  // in the request's order
};

// The error of a sweep that does not fit.
Error does_not_fit(const SweepPlan& plan, std::int64_t memory_limit_bytes);

// One JSON object; keys are documented in docs/report.md.
std::string to_json(const SweepReport& report);

}  // namespace tidekv
