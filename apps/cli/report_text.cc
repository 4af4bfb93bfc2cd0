#include "report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "text_layout.h"

namespace tidekv::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// "4,096" or "512 to 4,096".
std::string kept_range(const std::vector<LayerRetention>& layers) {
  const auto [low, high] = std::minmax_element(
      layers.begin(), layers.end(), [](const auto& a, const auto& b) { return a.kept < b.kept; });
  if (low == layers.end()) {
    return "0";
  }
  return low->kept == high->kept ? grouped(low->kept)
                                 : fmt::format("{} to {}", grouped(low->kept), grouped(high->kept));
}

// The table of plans: a label, then two cells for each plan.
class PlanTable {
 public:
  explicit PlanTable(const std::vector<PlanReport>& plans) : plans_(plans) {}

  void blank() { rows_.emplace_back(); }

  void text(const std::string& label, const std::function<std::string(const PlanReport&)>& cell) {
    std::vector<std::string> row = {label};
    for (const PlanReport& plan : plans_) {
      row.push_back(cell(plan));
      row.emplace_back();
    }
    rows_.push_back(std::move(row));
  }

  void bytes(const std::string& label,
             const std::function<std::int64_t(const PlanReport&)>& value) {
    std::vector<std::string> row = {label};
    for (const PlanReport& plan : plans_) {
      row.push_back(grouped(value(plan)));
      row.push_back(in_units(value(plan)));
    }
    rows_.push_back(std::move(row));
  }

  std::string str() const { return table(rows_); }

 private:
  const std::vector<PlanReport>& plans_;
  Rows rows_;
};

void add_peak_rows(PlanTable& rows, const std::vector<PlanReport>& plans) {
  rows.text("at the peak, bytes", [](const PlanReport&) { return std::string(); });
  const auto& components = plans.front().memory.components;
  for (std::size_t i = 0; i < components.size(); ++i) {
    const auto bytes = [i](const PlanReport& plan) {
      return i < plan.memory.components.size() ? plan.memory.components[i].second : 0;
    };
    if (std::any_of(plans.begin(), plans.end(),
                    [&](const PlanReport& plan) { return bytes(plan) != 0; })) {
      rows.bytes("  " + components[i].first, bytes);
    }
  }
  rows.bytes("peak", [](const PlanReport& plan) { return plan.memory.peak_bytes; });
  rows.bytes("  transient", [](const PlanReport& plan) { return plan.memory.transient_bytes; });
  rows.bytes("final cache", [](const PlanReport& plan) { return plan.memory.final_cache_bytes; });
  rows.bytes("reserved at start",
             [](const PlanReport& plan) { return plan.memory.reserved_bytes; });
}

// "4 bits, groups of 32; newest 128 as they are".
std::string quantised_text(const PlanReport& plan) {
  return plan.kv_group_len == 0 ? std::string("-")
                                : fmt::format("{} bits, groups of {}; newest {} as they are",
                                              plan.layers.empty() ? 0 : plan.layers.front().bits,
                                              plan.kv_group_len, grouped(plan.kv_residual_len));
}

// Where a plan has an offload pool.
void add_pool_rows(PlanTable& rows, const std::vector<PlanReport>& plans) {
  const bool any = std::any_of(plans.begin(), plans.end(),
                               [](const auto& plan) { return plan.memory.pool_bytes > 0; });
  if (!any) {
    return;
  }
  rows.blank();
  rows.bytes("offload pool, beside the peak",
             [](const PlanReport& plan) { return plan.memory.pool_bytes; });
  rows.bytes("  closed form",
             [](const PlanReport& plan) { return plan.formula.closed_form_pool_bytes; });
  rows.bytes("  moved there by the prompt",
             [](const PlanReport& plan) { return plan.prefill_transfers.down_bytes; });
  rows.text("  in copies",
            [](const PlanReport& plan) { return grouped(plan.prefill_transfers.down_count); });
  rows.bytes("  and back", [](const PlanReport& plan) { return plan.prefill_transfers.up_bytes; });
  rows.text("  in copies",
            [](const PlanReport& plan) { return grouped(plan.prefill_transfers.up_count); });
}

// What the peak holds beside the weights, against the formula's terms.
std::int64_t deviation_bytes(const PlanReport& plan) {
  return plan.memory.peak_bytes - plan.memory.weights_bytes - plan.formula.eq9_total_bytes;
}

void add_formula_rows(PlanTable& rows) {
  rows.bytes("closed form of the peak",
             [](const PlanReport& plan) { return plan.formula.closed_form_peak_bytes; });
  rows.text("  against the peak", [](const PlanReport& plan) {
    const std::int64_t off = plan.formula.closed_form_peak_bytes - plan.memory.peak_bytes;
    return off == 0 ? std::string("equal") : fmt::format("off by {}", grouped(off));
  });
  rows.text("Eq. (9), without weights", [](const PlanReport&) { return std::string(); });
  rows.bytes("  active KV",
             [](const PlanReport& plan) { return plan.formula.eq9_active_kv_bytes; });
  rows.bytes("  hidden", [](const PlanReport& plan) { return plan.formula.eq9_hidden_bytes; });
  rows.bytes("  chunk activations",
             [](const PlanReport& plan) { return plan.formula.eq9_activation_bytes; });
  rows.bytes("  compressed caches",
             [](const PlanReport& plan) { return plan.formula.eq9_compact_bytes; });
  rows.bytes("  compression temp",
             [](const PlanReport& plan) { return plan.formula.eq9_temp_bytes; });
  rows.bytes("  sum", [](const PlanReport& plan) { return plan.formula.eq9_total_bytes; });
  rows.bytes("peak - weights - Eq. (9)", deviation_bytes);
  rows.text("  of Eq. (9)", [](const PlanReport& plan) {
    const auto total = static_cast<double>(plan.formula.eq9_total_bytes);
    return total > 0
               ? fmt::format("{:+.1f} %", 100 * static_cast<double>(deviation_bytes(plan)) / total)
               : "-";
  });
}

std::string plan_title(const ModelInfo& model, const PlanReport& plan) {
  return fmt::format(
      "{}: {} layers, {} query and {} KV heads of {}, weights {}\n"
      "prompt {} tokens + at most {} generated, context {}, budget {}\n\n",
      printable(model.path), model.num_layers, model.num_q_heads, model.num_kv_heads,
      model.head_dim, model.weights_type, grouped(plan.prompt_len), grouped(plan.max_new_tokens),
      grouped(plan.context_len), grouped(plan.budget));
}

Rows component_rows(const MemoryReport& memory) {
  Rows rows;
  for (const auto& [name, bytes] : memory.components) {
    if (bytes != 0) {
      rows.push_back({"  " + name, grouped(bytes), in_units(bytes)});
    }
  }
  return rows;
}

// "by the prompt, there (in 96 copies)".
void add_transfer_rows(const char* stage, const TransferReport& transfers, Rows& rows) {
  const auto add = [&](const char* way, std::int64_t bytes, std::int64_t count) {
    rows.push_back({fmt::format("  {}, {}, {} copies", stage, way, grouped(count)), grouped(bytes),
                    in_units(bytes)});
  };
  add("to the pool", transfers.down_bytes, transfers.down_count);
  add("and back", transfers.up_bytes, transfers.up_count);
}

std::string against_plan(std::int64_t measured, std::int64_t planned) {
  const std::int64_t off = measured - planned;
  return off == 0 ? "as planned" : fmt::format("{} more than planned", grouped(off));
}

std::string times_text(const RunReport& report) {
  const double share =
      report.prefill_seconds > 0 ? 100 * report.compress_seconds / report.prefill_seconds : 0;
  const std::int64_t decoded = std::max<std::int64_t>(report.generated_tokens - 1, 0);
  return table({
      {"prompt", grouped(report.plan.prompt_len) + " tokens", seconds_text(report.prefill_seconds),
       rate_text(static_cast<double>(report.plan.prompt_len), report.prefill_seconds)},
      {"  compression", "", seconds_text(report.compress_seconds),
       fmt::format("{:.1f} % of prefill", share)},
      {"first token", "", seconds_text(report.ttft_seconds), "after the request"},
      {"generated", grouped(report.generated_tokens) + " tokens",
       seconds_text(report.decode_seconds),
       rate_text(static_cast<double>(decoded), report.decode_seconds)},
  });
}

// ", 12 to 4,096 a KV head" where heads differ.
std::string heads_text(const std::vector<LayerRetention>& layers) {
  std::vector<std::int64_t> lens;
  for (const LayerRetention& layer : layers) {
    lens.insert(lens.end(), layer.kept_by_head.begin(), layer.kept_by_head.end());
  }
  const auto [low, high] = std::minmax_element(lens.begin(), lens.end());
  return lens.empty() ? "" : fmt::format(", {} to {} a KV head", grouped(*low), grouped(*high));
}

// Where a preset's way to split a budget missed it.
std::string preset_text(const std::vector<LayerRetention>& layers, const PrefillOptions& options) {
  std::int64_t kept = 0;
  std::int64_t budget = 0;
  for (const LayerRetention& layer : layers) {
    kept += layer.kept;
    budget += std::min(options.budget, layer.total);
  }
  const bool meets = kept == budget;
  return meets || options.budget_split == BudgetSplit::kExact
             ? ""
             : fmt::format("; the preset splits a budget of {} so", grouped(options.budget));
}

}  // namespace

std::string kept_text(const std::vector<LayerRetention>& layers, const PrefillOptions& options) {
  const std::int64_t total = layers.empty() ? 0 : layers.front().total;
  const bool all = std::all_of(layers.begin(), layers.end(),
                               [](const auto& layer) { return layer.kept == layer.total; });
  const bool has_codes = layers.size() > 0 && layers.front().bits > 0;
  if (all && has_codes && total >= options.kv_residual_len) {
    return fmt::format("kept all {} tokens a layer, older ones in {} bits", grouped(total),
                       layers.front().bits);
  }
  if (all) {
    const std::string_view why = keeps_everything(options.method) ? " (this method drops nothing)"
                                 : options.budget >= total        ? " (the prompt fits the budget)"
                                                                  : "";
    return fmt::format("kept all {} tokens a layer{}", grouped(total), why);
  }
  return fmt::format("kept {} of {} tokens a layer{}{}", kept_range(layers), grouped(total),
                     heads_text(layers), preset_text(layers, options));
}

std::string plan_text(const ModelInfo& model, const std::vector<PlanReport>& plans,
                      const PrefillOptions& options) {
  PlanTable rows(plans);
  rows.text("method", [](const PlanReport& plan) { return plan.method; });
  rows.text("chunk, tokens", [](const PlanReport& plan) { return grouped(plan.chunk_len); });
  rows.text("kept a layer, tokens", [&](const PlanReport& plan) {
    return kept_range(plan.layers) + preset_text(plan.layers, options);
  });
  if (std::any_of(plans.begin(), plans.end(),
                  [](const auto& plan) { return plan.kv_group_len > 0; })) {
    rows.text("  older ones in", quantised_text);
  }
  rows.blank();
  add_peak_rows(rows, plans);
  add_pool_rows(rows, plans);
  rows.blank();
  add_formula_rows(rows);
  if (options.memory_limit_bytes > 0 || options.pool_limit_bytes > 0) {
    rows.blank();
    const auto limit = [&rows](const char* label, std::int64_t bytes) {
      if (bytes > 0) {
        rows.bytes(label, [bytes](const PlanReport&) { return bytes; });
      }
    };
    limit("memory limit", options.memory_limit_bytes);
    limit("pool limit", options.pool_limit_bytes);
    rows.text("fits", [](const PlanReport& plan) { return plan.fits ? "yes" : "NO"; });
    rows.text("largest prompt that fits",
              [](const PlanReport& plan) { return grouped(plan.max_prompt_len); });
  }
  return plan_title(model, plans.front()) + rows.str();
}

std::string run_text(const RunReport& report) {
  const MemoryReport& memory = report.memory;
  std::string text = times_text(report);
  text += fmt::format("  stopped: {}\n\n", report.stop_reason);

  const MemoryReport& planned = report.plan.memory;
  Rows rows = {{"device peak, " + against_plan(memory.peak_bytes, planned.peak_bytes),
                grouped(memory.peak_bytes), in_units(memory.peak_bytes)}};
  for (auto& row : component_rows(memory)) {
    rows.push_back(std::move(row));
  }
  const auto add = [&rows](const char* label, std::int64_t bytes) {
    rows.push_back({label, grouped(bytes), in_units(bytes)});
  };
  add("final cache", memory.final_cache_bytes);
  add("reserved at start", memory.reserved_bytes);
  add("process peak", report.process_peak_bytes);
  if (memory.pool_bytes > 0) {
    rows.push_back({"offload pool, " + against_plan(memory.pool_bytes, planned.pool_bytes),
                    grouped(memory.pool_bytes), in_units(memory.pool_bytes)});
    add_transfer_rows("prompt", report.prefill_transfers, rows);
    add_transfer_rows("answer", report.decode_transfers, rows);
  }
  text += table(rows);

  if (!report.digests.empty()) {
    Rows digests = {{"layer", "hidden", "positions", "cache"}};
    for (std::size_t i = 0; i < report.digests.size(); ++i) {
      const LayerDigest& digest = report.digests[i];
      digests.push_back({std::to_string(i), fmt::format("{:016x}", digest.hidden),
                         fmt::format("{:016x}", digest.positions),
                         fmt::format("{:016x}", digest.cache)});
    }
    text += "\n" + table(digests);
  }
  return text;
}

}  // namespace tidekv::cli
