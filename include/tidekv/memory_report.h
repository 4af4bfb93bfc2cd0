// What a plan promises and a run measured: bytes by component, tokens kept by layer, times.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tidekv {

// Device bytes. A plan and a run of the same request have equal numbers here, to the byte.
struct MemoryReport {
  std::int64_t peak_bytes = 0;  // everything live at the worst instant, weights included
  std::int64_t weights_bytes = 0;
  std::int64_t final_cache_bytes = 0;  // retained KV after prefill; generated rows not included
  std::int64_t transient_bytes = 0;    // peak - weights - final cache
  std::int64_t reserved_bytes = 0;     // taken from the system at once, weights not included
  std::int64_t pool_bytes = 0;  // of the offload pool, which is no part of the others; else 0
  // What the peak was made of, by component name, in a fixed order; zeros included.
  std::vector<std::pair<std::string, std::int64_t>> components;
};

// What went between the device and the offload pool.
struct TransferReport {
  std::int64_t down_bytes = 0;  // to the pool
  std::int64_t down_count = 0;  // copies
  std::int64_t up_bytes = 0;    // to the device
  std::int64_t up_count = 0;
  friend bool operator==(const TransferReport&, const TransferReport&) = default;
};

struct LayerRetention {
  std::int64_t kept = 0;   // tokens retained per KV head; their mean where heads differ
  std::int64_t total = 0;  // tokens of the prompt
  // Tokens each KV head retained, where they differ; of a plan always empty, for that depends on
  // what the prompt says.
  std::vector<std::int64_t> kept_by_head;
  std::int64_t bits = 0;  // of an element of what is quantised; 0 where nothing is
};

// One change of the ledger.
struct TimelineEntry {
  std::string stage;  // setup, prefill, compress, decode
  int layer = -1;     // -1 outside the layer loop
  std::string component;
  std::int64_t delta_bytes = 0;
  std::int64_t live_bytes = 0;
};

// Canonical order (layer, head, position), no padding; equal for every schedule that evicts when
// the prompt was seen.
struct LayerDigest {
  std::uint64_t hidden = 0;     // rows that left the layer
  std::uint64_t positions = 0;  // retained positions
  std::uint64_t cache = 0;      // retained keys, then values
};

// The largest working set by the closed form, and by the plain terms of the paper's Eq. (9).
struct FormulaReport {
  std::int64_t closed_form_peak_bytes = 0;  // equals MemoryReport::peak_bytes
  std::int64_t closed_form_pool_bytes = 0;  // equals MemoryReport::pool_bytes
  std::int64_t eq9_active_kv_bytes = 0;     // 2 H_kv S D b
  std::int64_t eq9_hidden_bytes = 0;        // S d_model b
  std::int64_t eq9_activation_bytes = 0;    // c C d_ff b
  std::int64_t eq9_compact_bytes = 0;       // sum over finished layers of 2 H_kv K D b
  std::int64_t eq9_temp_bytes = 0;          // H_q (W b_s + K) b
  std::int64_t eq9_total_bytes = 0;
};

struct PlanReport {
  std::string method;
  std::int64_t prompt_len = 0;
  std::int64_t chunk_len = 0;
  std::int64_t budget = 0;
  std::int64_t context_len = 0;  // the cap the plan was made under
  std::int64_t max_new_tokens = 0;
  std::int64_t kv_group_len = 0;     // elements that share a scale; 0 where nothing is quantised
  std::int64_t kv_residual_len = 0;  // newest tokens that are not, where others are
  bool fits = true;                  // within the limits of memory and pool, if there are any
  std::int64_t max_prompt_len = 0;   // largest prompt that fits the limits; 0 without a limit
  MemoryReport memory;
  TransferReport prefill_transfers;
  FormulaReport formula;
  std::vector<LayerRetention> layers;
  std::vector<TimelineEntry> timeline;
};

// What came after the prompt.
struct Generation {
  double decode_seconds = 0;        // from the first token on
  double decode_steps_seconds = 0;  // of it, in the model: no sampling, no text
  std::int64_t generated_tokens = 0;
  std::string stop_reason;  // eos, length, cancelled
  std::vector<std::int32_t> tokens;
  std::string text;
};

struct RunReport : Generation {
  PlanReport plan;      // made before the run
  MemoryReport memory;  // measured by the ledger
  TransferReport prefill_transfers;
  TransferReport decode_transfers;
  std::vector<LayerRetention> layers;
  std::vector<LayerDigest> digests;     // if asked
  std::vector<TimelineEntry> timeline;  // if asked
  std::int64_t process_peak_bytes = 0;  // VmHWM of the whole process
  double prefill_seconds = 0;           // embedding to first logits, compression included
  double compress_seconds = 0;          // scoring, selection and packing
  double ttft_seconds = 0;              // request to first token: plan, reserve, prefill, sampling
};

// One JSON object; keys are documented in docs/report.md and shared by both.
std::string to_json(const PlanReport& report);
std::string to_json(const RunReport& report);

}  // namespace tidekv
