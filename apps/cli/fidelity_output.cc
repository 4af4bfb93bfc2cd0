#include "fidelity_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "targets.h"
#include "text_layout.h"
#include "tidekv/engine.h"

namespace tidekv::cli {
namespace {

using Json = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

constexpr int kSchemaVersion = 1;

// --- JSON ---

Json drifts_json(const std::vector<Drift>& drifts) {
  Json array = Json::array();
  for (const Drift& drift : drifts) {
    array.push_back({{"relative_l2", drift.relative_l2}, {"cosine", drift.cosine}});
  }
  return array;
}

Json target_json(const FidelityResults& results, std::size_t target) {
  const FidelitySummary summary = summary_of(results, target);
  return {{"method", results.targets[target].method},
          {"budget", shown_budget(results.targets[target])},
          {"prefill", summary.prefill},
          {"prefill_seconds", summary.prefill_seconds},
          {"relative_l2", summary.hidden.relative_l2},
          {"cosine", summary.hidden.cosine},
          {"equal_rows", summary.equal_rows},
          {"top1_agreement", summary.top1_agreement},
          {"js_divergence", summary.js_divergence},
          {"kl_mean", summary.kl_mean},
          {"kl_max", summary.kl_max},
          {"kl_by_token", summary.kl_by_token},
          {"log_probability", summary.log_probability},
          {"control", summary.control},
          {"full_minus_control", summary.eq3.full_minus_control},
          {"control_minus_method", summary.eq3.control_minus_method},
          {"full_minus_method", summary.eq3.sum},
          {"layers", drifts_json(summary.layers)},
          {"chunks", drifts_json(summary.chunks)}};
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return sum / static_cast<double>(values.size());
}

Json prompt_json(const FidelityResults& results, const PromptFidelity& prompt) {
  const FidelityReport& report = prompt.report;
  Json json = {{"id", prompt.id},
               {"prompt_len", report.prompt_len},
               {"continuation", report.continuation},
               {"log_probability", report.log_probability},
               {"prefill_seconds", report.prefill_seconds},
               {"reference_bytes", report.reference_bytes},
               {"peak_bytes", report.peak_bytes}};
  json["targets"] = Json::array();
  for (std::size_t i = 0; i < report.targets.size(); ++i) {
    const TargetFidelity& target = report.targets[i];
    json["targets"].push_back({{"method", target.method},
                               {"budget", shown_budget(results.targets[i])},
                               {"relative_l2", target.hidden.relative_l2},
                               {"cosine", target.hidden.cosine},
                               {"num_rows", target.num_rows},
                               {"num_equal_rows", target.num_equal_rows},
                               {"top1_agrees", target.top1_agrees},
                               {"js_divergence", target.js_divergence},
                               {"kl_mean", mean(target.kl_divergence)},
                               {"log_probability", target.log_probability}});
  }
  return json;
}

std::string json_text(const FidelityResults& results) {
  const FidelityReport& first = results.prompts.front().report;
  Json json = {{"schema_version", kSchemaVersion},
               {"model", results.model},
               {"backend", results.backend},
               {"compute_type", first.compute_type},
               {"chunk_len", first.chunk_len},
               {"budgets", results.budgets},
               {"num_next", first.continuation.size()},
               {"num_prompts", results.prompts.size()},
               {"num_prefills", first.num_prefills}};
  json["targets"] = Json::array();
  for (std::size_t i = 0; i < results.targets.size(); ++i) {
    json["targets"].push_back(target_json(results, i));
  }
  json["prompts"] = Json::array();
  for (const PromptFidelity& prompt : results.prompts) {
    json["prompts"].push_back(prompt_json(results, prompt));
  }
  // Infinity and NaN are null; a path that is not UTF-8 is shown with U+FFFD.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// --- Markdown ---

// Nothing but 0 itself is shown as 0.
std::string distance_text(double value) { return value == 0 ? "0" : fmt::format("{:.3g}", value); }

// Nothing but 1 itself is shown as 1.
std::string likeness_text(double value) {
  const std::string text = fmt::format("{:.4f}", value);
  return value == 1 ? "1" : text == "1.0000" ? fmt::format("1 - {:.1g}", 1 - value) : text;
}

class MarkdownText {
 public:
  explicit MarkdownText(const FidelityResults& results) : results_(&results) {
    for (std::size_t i = 0; i < results.targets.size(); ++i) {
      summaries_.push_back(summary_of(results, i));
    }
  }

  std::string text() const {
    return head() + markdown_table(main_rows()) + notes() + by_budget() + by_chunk() + eq3();
  }

 private:
  std::string head() const {
    std::int64_t shortest = INT64_MAX;
    std::int64_t longest = 0;
    for (const PromptFidelity& prompt : results_->prompts) {
      shortest = std::min(shortest, prompt.report.prompt_len);
      longest = std::max(longest, prompt.report.prompt_len);
    }
    const FidelityReport& first = results_->prompts.front().report;
    const std::string tokens = shortest == longest
                                   ? grouped(longest)
                                   : fmt::format("{} to {}", grouped(shortest), grouped(longest));
    return fmt::format("{} prompt{} of {} tokens, chunk {}, budget {}; {}, {}; next {} tokens\n\n",
                       results_->prompts.size(), results_->prompts.size() == 1 ? "" : "s", tokens,
                       grouped(first.chunk_len), grouped(results_->budgets.front()),
                       results_->backend, first.compute_type, first.continuation.size());
  }

  Rows main_rows() const {
    Rows rows = {{"method", "hidden rel. L2", "cosine", "equal rows", "top-1", "JS", "KL, mean",
                  "KL, max", "prefill"}};
    rows.push_back({"full (reference)", "0", "1", "1", "1", "0", "0", "0", "own"});
    for (std::size_t i = 0; i < summaries_.size(); ++i) {
      const FidelitySummary& summary = summaries_[i];
      if (results_->is_main(results_->targets[i])) {
        rows.push_back({results_->targets[i].method, distance_text(summary.hidden.relative_l2),
                        likeness_text(summary.hidden.cosine), likeness_text(summary.equal_rows),
                        likeness_text(summary.top1_agreement), distance_text(summary.js_divergence),
                        distance_text(summary.kl_mean), distance_text(summary.kl_max),
                        summary.prefill == 0     ? "reference's"
                        : summary.shares_prefill ? "shared"
                                                 : "own"});
      }
    }
    return rows;
  }

  std::string notes() const {
    std::string text =
        "\nhidden: mean over rows, layers and prompts; 0 and 1 are exact. JS: next token after "
        "the\n"
        "prompt. KL(full, method): of each next token of the full cache's own continuation. In "
        "nats.\n";
    const bool shared = std::any_of(summaries_.begin(), summaries_.end(), [](const auto& summary) {
      return summary.shares_prefill && summary.prefill != 0;
    });
    return shared
               ? text +
                     "shared: one layer-major prefill a prompt makes the caches of all these, for "
                     "all budgets.\n"
               : text;
  }

  bool is_exact(std::size_t target) const {
    return summaries_[target].hidden.relative_l2 == 0 && summaries_[target].equal_rows == 1;
  }

  // One table of methods and budgets.
  std::string budget_table(const std::string& title,
                           double (*value_of)(const FidelitySummary&)) const {
    std::vector<std::int64_t> budgets = results_->budgets;
    std::sort(budgets.begin(), budgets.end());
    Rows rows = {{"method"}};
    for (const std::int64_t budget : budgets) {
      rows.front().push_back(grouped(budget));
    }
    for (std::size_t i = 0; i < summaries_.size(); ++i) {
      const std::string& method = results_->targets[i].method;
      if (keeps_everything(method) || !results_->is_main(results_->targets[i])) {
        continue;
      }
      rows.push_back({method});
      for (const std::int64_t budget : budgets) {
        for (std::size_t j = 0; j < summaries_.size(); ++j) {
          if (results_->targets[j].method == method && results_->targets[j].budget == budget) {
            rows.back().push_back(distance_text(value_of(summaries_[j])));
          }
        }
      }
    }
    return rows.size() == 1 ? "" : "\n" + title + "\n\n" + markdown_table(rows);
  }

  std::string by_budget() const {
    if (results_->budgets.size() < 2) {
      return "";
    }
    return budget_table("Hidden relative L2 by budget:",
                        [](const FidelitySummary& summary) { return summary.hidden.relative_l2; }) +
           budget_table("Mean KL of the next tokens by budget:",
                        [](const FidelitySummary& summary) { return summary.kl_mean; });
  }

  // Those that are equal bit for bit in one column.
  std::string by_chunk() const {
    std::vector<std::size_t> drifting;
    std::vector<std::size_t> exact;
    std::size_t num_chunks = 0;
    for (std::size_t i = 0; i < summaries_.size(); ++i) {
      if (results_->is_main(results_->targets[i])) {
        (is_exact(i) ? exact : drifting).push_back(i);
        num_chunks = std::max(num_chunks, summaries_[i].chunks.size());
      }
    }
    Rows rows = {{"chunk"}};
    for (const std::size_t target : drifting) {
      rows.front().push_back(results_->targets[target].method);
    }
    if (!exact.empty()) {
      rows.front().emplace_back(drifting.empty() ? "all" : "all others");
    }
    for (std::size_t chunk = 0; chunk < num_chunks; ++chunk) {
      rows.push_back({std::to_string(chunk)});
      for (const std::size_t target : drifting) {
        rows.back().push_back(distance_text(summaries_[target].chunks[chunk].relative_l2));
      }
      if (!exact.empty()) {
        rows.back().emplace_back("0");
      }
    }
    return "\nHidden relative L2 by chunk:\n\n" + markdown_table(rows);
  }

  std::string eq3() const {
    Rows rows = {{"method", "control", "full - control", "control - method", "sum: full - method"}};
    for (std::size_t i = 0; i < summaries_.size(); ++i) {
      if (results_->is_main(results_->targets[i])) {
        const FidelitySummary& summary = summaries_[i];
        rows.push_back({results_->targets[i].method, summary.control,
                        distance_text(summary.eq3.full_minus_control),
                        distance_text(summary.eq3.control_minus_method),
                        distance_text(summary.eq3.sum)});
      }
    }
    return "\nEq. (3), of the mean log-probability of the full cache's continuation, nats a "
           "token:\n\n" +
           markdown_table(rows);
  }

  const FidelityResults* results_;
  std::vector<FidelitySummary> summaries_;
};

}  // namespace

std::string fidelity_text(FidelityFormat format, const FidelityResults& results) {
  return format == FidelityFormat::kJson ? json_text(results) : MarkdownText(results).text();
}

}  // namespace tidekv::cli
