// Reports as JSON. The keys are documented in docs/report.md; change both together, and raise
// kSchemaVersion when a key goes away or changes its meaning.
#include <nlohmann/json.hpp>

#include "tidekv/memory_report.h"
#include "tidekv/sweep.h"

namespace tidekv {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;
constexpr int kIndent = 2;

Json layers_json(const std::vector<LayerRetention>& layers) {
  Json array = Json::array();
  for (const LayerRetention& layer : layers) {
    Json entry = {{"kept", layer.kept}, {"total", layer.total}};
    if (!layer.kept_by_head.empty()) {
      entry["kept_by_head"] = layer.kept_by_head;
    }
    if (layer.bits > 0) {
      entry["bits"] = layer.bits;
    }
    array.push_back(std::move(entry));
  }
  return array;
}

Json formula_json(const FormulaReport& formula) {
  return {{"closed_form_peak_bytes", formula.closed_form_peak_bytes},
          {"closed_form_pool_bytes", formula.closed_form_pool_bytes},
          {"eq9_active_kv_bytes", formula.eq9_active_kv_bytes},
          {"eq9_hidden_bytes", formula.eq9_hidden_bytes},
          {"eq9_activation_bytes", formula.eq9_activation_bytes},
          {"eq9_compact_bytes", formula.eq9_compact_bytes},
          {"eq9_temp_bytes", formula.eq9_temp_bytes},
          {"eq9_total_bytes", formula.eq9_total_bytes}};
}

void add_memory(const MemoryReport& memory, Json& json) {
  json["peak_bytes"] = memory.peak_bytes;
  json["weights_bytes"] = memory.weights_bytes;
  json["final_cache_bytes"] = memory.final_cache_bytes;
  json["transient_bytes"] = memory.transient_bytes;
  json["reserved_bytes"] = memory.reserved_bytes;
  json["pool_bytes"] = memory.pool_bytes;
  Json components = Json::object();
  for (const auto& [name, bytes] : memory.components) {
    components[name] = bytes;
  }
  json["components"] = std::move(components);
}

void add_transfers(const char* key, const TransferReport& transfers, Json& json) {
  json[key] = {{"down_bytes", transfers.down_bytes},
               {"down_count", transfers.down_count},
               {"up_bytes", transfers.up_bytes},
               {"up_count", transfers.up_count}};
}

// The keys that a plan and a run share. `memory` and `layers` are the plan's or the run's own.
Json shared_json(const PlanReport& plan, const MemoryReport& memory,
                 const std::vector<LayerRetention>& layers) {
  Json json;
  json["schema_version"] = kSchemaVersion;
  json["method"] = plan.method;
  json["prompt_len"] = plan.prompt_len;
  json["chunk_len"] = plan.chunk_len;
  json["budget"] = plan.budget;
  json["context_len"] = plan.context_len;
  json["max_new_tokens"] = plan.max_new_tokens;
  if (plan.kv_group_len > 0) {
    json["kv_group_len"] = plan.kv_group_len;
    json["kv_residual_len"] = plan.kv_residual_len;
  }
  json["fits"] = plan.fits;
  json["max_prompt_len"] = plan.max_prompt_len;
  add_memory(memory, json);
  json["formula"] = formula_json(plan.formula);
  json["layers"] = layers_json(layers);
  return json;
}

// 16 hexadecimal digits: JSON readers that keep numbers as doubles would round 64 bits.
std::string hex_digits(std::uint64_t value) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text(16, '0');
  for (std::size_t i = text.size(); i > 0; --i, value >>= 4) {
    text[i - 1] = kDigits[value & 15];
  }
  return text;
}

Json digests_json(const std::vector<LayerDigest>& digests) {
  Json array = Json::array();
  for (const LayerDigest& digest : digests) {
    array.push_back({{"hidden", hex_digits(digest.hidden)},
                     {"positions", hex_digits(digest.positions)},
                     {"cache", hex_digits(digest.cache)}});
  }
  return array;
}

void add_generation(const Generation& generation, Json& json) {
  json["decode_seconds"] = generation.decode_seconds;
  json["decode_steps_seconds"] = generation.decode_steps_seconds;
  json["generated_tokens"] = generation.generated_tokens;
  json["stop_reason"] = generation.stop_reason;
  json["tokens"] = generation.tokens;
  json["text"] = generation.text;
}

Json target_json(const SweepPlan& plan, const TargetReport& report, std::size_t index) {
  const PlanReport& alone = plan.alone[index];
  Json json = {{"method", alone.method},
               {"budget", alone.budget},
               {"cache", plan.cache_of[index]},
               {"alone_chunk_len", alone.chunk_len},
               {"alone_peak_bytes", alone.memory.peak_bytes},
               {"alone_final_cache_bytes", alone.memory.final_cache_bytes},
               {"alone_transient_bytes", alone.memory.transient_bytes},
               {"prefill_seconds", report.prefill_seconds},
               {"layers", layers_json(report.layers)}};
  add_generation(report, json);
  if (!report.digests.empty()) {
    json["digests"] = digests_json(report.digests);
  }
  return json;
}

// Text that is not UTF-8 (a path, a model's odd bytes) is shown with U+FFFD instead of failing.
std::string dump(const Json& json) {
  return json.dump(kIndent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string to_json(const PlanReport& report) {
  Json json = shared_json(report, report.memory, report.layers);
  if (report.memory.pool_bytes > 0) {
    add_transfers("prefill_transfers", report.prefill_transfers, json);
  }
  return dump(json);
}

std::string to_json(const RunReport& report) {
  Json json = shared_json(report.plan, report.memory, report.layers);
  if (report.memory.pool_bytes > 0) {
    add_transfers("prefill_transfers", report.prefill_transfers, json);
    add_transfers("decode_transfers", report.decode_transfers, json);
  }
  json["planned_peak_bytes"] = report.plan.memory.peak_bytes;
  json["process_peak_bytes"] = report.process_peak_bytes;
  json["prefill_seconds"] = report.prefill_seconds;
  json["compress_seconds"] = report.compress_seconds;
  json["ttft_seconds"] = report.ttft_seconds;
  add_generation(report, json);
  if (!report.digests.empty()) {
    json["digests"] = digests_json(report.digests);
  }
  return dump(json);
}

std::string to_json(const SweepReport& report) {
  Json json = {{"schema_version", kSchemaVersion},
               {"prompt_len", report.plan.prompt_len},
               {"chunk_len", report.plan.chunk_len},
               {"max_new_tokens", report.plan.max_new_tokens},
               {"num_caches", report.plan.num_caches}};
  add_memory(report.memory, json);
  json["planned_peak_bytes"] = report.plan.memory.peak_bytes;
  json["process_peak_bytes"] = report.process_peak_bytes;
  json["prefill_seconds"] = report.prefill_seconds;
  json["compress_seconds"] = report.compress_seconds;
  json["targets"] = Json::array();
  for (std::size_t index = 0; index < report.targets.size(); ++index) {
    json["targets"].push_back(target_json(report.plan, report.targets[index], index));
  }
  return dump(json);
}

}  // namespace tidekv
