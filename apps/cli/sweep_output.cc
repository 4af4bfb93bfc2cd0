#include "sweep_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "targets.h"
#include "text_layout.h"

namespace tidekv::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kSchemaVersion = 1;

// Text of a model need not be UTF-8; JSON must.
std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

double decode_rate(const TargetSummary& summary) {
  return summary.decode_seconds > 0 ? summary.decode_tokens / summary.decode_seconds : 0;
}

Json prompt_json(const SweepResults& results, const PromptResult& prompt) {
  Json json = {{"id", prompt.id}};
  json.update(Json::parse(to_json(prompt.report)));
  for (std::size_t i = 0; i < results.targets.size(); ++i) {
    Json& target = json["targets"][i];
    target["budget"] = shown_budget(results.targets[i]);
    if (prompt.scored) {
      target["right"] = static_cast<bool>(prompt.right[i]);
    }
  }
  return json;
}

Json target_json(const SweepResults& results, std::size_t target) {
  const TargetSummary summary = summary_of(results, target);
  Json json = {{"method", results.targets[target].method},
               {"budget", shown_budget(results.targets[target])}};
  if (const std::int64_t scored = results.num_scored(); scored > 0) {
    const Interval interval = wilson_interval(summary.right, scored);
    json["right"] = summary.right;
    json["scored"] = scored;
    json["share_low"] = interval.low / 100;
    json["share_high"] = interval.high / 100;
  }
  json["kept"] = summary.kept;
  json["alone_peak_bytes"] = summary.alone_peak_bytes;
  json["prefill_seconds"] = summary.prefill_seconds;
  json["decode_tokens_per_second"] = decode_rate(summary);
  return json;
}

Json summary_json(const SweepResults& results) {
  Json json = {{"schema_version", kSchemaVersion},   {"model", results.model},
               {"backend", results.backend},         {"complete", results.complete()},
               {"num_prompts", results.num_prompts}, {"num_done", results.prompts.size()}};
  json["targets"] = Json::array();
  for (std::size_t i = 0; i < results.targets.size(); ++i) {
    json["targets"].push_back(target_json(results, i));
  }
  return json;
}

std::string json_text(const SweepResults& results) {
  Json json = summary_json(results);
  json["prompts"] = Json::array();
  for (const PromptResult& prompt : results.prompts) {
    json["prompts"].push_back(prompt_json(results, prompt));
  }
  return dump(json, 2) + "\n";
}

std::string csv_text(const SweepResults& results) {
  std::string text =
      "method,budget,num_prompts,num_done,right,scored,share_low,share_high,kept,"
      "alone_peak_bytes,prefill_seconds,decode_tokens_per_second\n";
  for (std::size_t i = 0; i < results.targets.size(); ++i) {
    const TargetSummary summary = summary_of(results, i);
    const std::int64_t scored = results.num_scored();
    const Interval interval = wilson_interval(summary.right, scored);
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", results.targets[i].method,
                    shown_budget(results.targets[i]), results.num_prompts, results.prompts.size(),
                    summary.right, scored, interval.low / 100, interval.high / 100, summary.kept,
                    summary.alone_peak_bytes, summary.prefill_seconds, decode_rate(summary));
  }
  return text;
}

std::vector<std::string> target_row(const SweepResults& results, std::size_t target) {
  const TargetSummary summary = summary_of(results, target);
  const std::int64_t budget = shown_budget(results.targets[target]);
  std::vector<std::string> row = {results.targets[target].method,
                                  budget > 0 ? grouped(budget) : "all"};
  if (const std::int64_t scored = results.num_scored(); scored > 0) {
    const Interval interval = wilson_interval(summary.right, scored);
    row.push_back(fmt::format("{}/{}", summary.right, scored));
    row.push_back(fmt::format(
        "{:.0f} %", 100.0 * static_cast<double>(summary.right) / static_cast<double>(scored)));
    row.push_back(fmt::format("{:.0f} - {:.0f} %", interval.low, interval.high));
  }
  row.push_back(grouped(std::llround(summary.kept)));
  row.push_back(in_units(summary.alone_peak_bytes));
  row.push_back(seconds_text(summary.prefill_seconds));
  row.push_back(summary.decode_tokens > 0 ? fmt::format("{:.1f}", decode_rate(summary)) : "-");
  return row;
}

// How many prompts ran, how often each was prefilled, and what the sweep itself needed.
std::string closing_line(const SweepResults& results) {
  std::int64_t peak = 0;
  for (const PromptResult& prompt : results.prompts) {
    peak = std::max(peak, prompt.report.memory.peak_bytes);
  }
  const auto total = static_cast<std::int64_t>(results.num_prompts);
  const auto done = static_cast<std::int64_t>(results.prompts.size());
  if (!results.complete()) {
    return fmt::format("\nincomplete: {} of {} prompts ran\n", grouped(done), grouped(total));
  }
  const std::string prefills =
      results.num_prefills == 1
          ? "prefilled once for all"
          : fmt::format("each prefilled {} times: methods that cannot share one have their own",
                        results.num_prefills);
  return fmt::format("\n{} prompt{}, {}; peak of the sweep {}\n", grouped(total),
                     total == 1 ? "" : "s", prefills, in_units(peak));
}

std::string markdown_text(const SweepResults& results) {
  if (results.prompts.empty()) {
    return closing_line(results);
  }
  std::vector<std::vector<std::string>> rows = {{"method", "budget"}};
  if (results.num_scored() > 0) {
    rows.front().insert(rows.front().end(), {"right", "share", "95 % interval"});
  }
  rows.front().insert(rows.front().end(), {"kept a layer", "peak alone", "prefill", "decode t/s"});
  for (std::size_t i = 0; i < results.targets.size(); ++i) {
    rows.push_back(target_row(results, i));
  }
  return markdown_table(rows) + closing_line(results);
}

}  // namespace

std::string prompt_text(SweepFormat format, const SweepResults& results,
                        const PromptResult& prompt) {
  return format == SweepFormat::kJsonLines ? dump(prompt_json(results, prompt), -1) + "\n" : "";
}

std::string results_text(SweepFormat format, const SweepResults& results) {
  switch (format) {
    case SweepFormat::kMarkdown:
      return markdown_text(results);
    case SweepFormat::kCsv:
      return csv_text(results);
    case SweepFormat::kJson:
      return json_text(results);
    case SweepFormat::kJsonLines:
      break;
  }
  return dump(summary_json(results), -1) + "\n";
}

}  // namespace tidekv::cli
