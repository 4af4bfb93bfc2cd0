#include "report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tidekv::micro {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kGiga = 1e9;

// "140.1 (135.2..145.0) | 152.9 (..155.0) | 92 % (87..95), best 94 %"; rates in units of 1e9.
std::string usage_cells(const std::optional<Usage>& usage) {
  if (!usage) {
    return " - | - | - |";
  }
  const auto& [rate, limit, share] = *usage;
  return fmt::format(
      " {:.1f} ({:.1f}..{:.1f}) | {:.1f} (..{:.1f}) | {:.0f} % ({:.0f}..{:.0f}), best {:.0f} % |",
      rate.median / kGiga, rate.least / kGiga, rate.most / kGiga, limit.median / kGiga,
      limit.most / kGiga, 100 * share.median, 100 * share.least, 100 * share.most,
      100 * usage->best_share());
}

Json spread_json(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.least}, {"max", spread.most}};
}

Json usage_json(const std::optional<Usage>& usage) {
  if (!usage) {
    return nullptr;
  }
  return {{"per_second", spread_json(usage->rate)},
          {"limit_per_second", spread_json(usage->limit)},
          {"share", spread_json(usage->share)},
          {"best_share", usage->best_share()}};
}

Json loops_json(const Limits& limits) {
  Json loops = Json::array();
  for (const auto& [name, rate] : limits.loops()) {
    loops.push_back({{"name", name}, {"flops_per_second", rate}});
  }
  return loops;
}

}  // namespace

std::string markdown_head(const Setting& setting, const Limits& limits) {
  std::string text =
      fmt::format("Backend {}, {} threads. Register-only loops, GFLOP/s:", setting.backend,
                  setting.num_threads);
  for (const auto& [name, rate] : limits.loops()) {
    text += fmt::format(" {} {:.1f};", name, rate / kGiga);
  }
  text.back() = '.';
  return text +
         "\n\n"
         "| operation | us a call | GFLOP/s | peak | of peak | GB/s | bandwidth | of bandwidth |\n"
         "|---|---:|---:|---:|---:|---:|---:|---:|\n";
}

std::string markdown_row(const std::string& name, const Measurement& measured) {
  return fmt::format("| {} | {:.1f} |{}{}\n", name, measured.call_seconds.median * 1e6,
                     usage_cells(measured.arithmetic), usage_cells(measured.memory));
}

std::string json_text(const Setting& setting, const Limits& limits,
                      const std::vector<std::pair<std::string, Measurement>>& results) {
  Json list = Json::array();
  for (const auto& [name, measured] : results) {
    list.push_back({{"name", name},
                    {"call_seconds", spread_json(measured.call_seconds)},
                    {"flops", usage_json(measured.arithmetic)},
                    {"bytes", usage_json(measured.memory)},
                    {"rounds", measured.num_rounds},
                    {"calls_per_round", measured.calls_per_round}});
  }
  const Json all = {{"backend", setting.backend},       {"threads", setting.num_threads},
                    {"seconds", setting.seconds},       {"peak_loop", limits.best_loop()},
                    {"peak_loops", loops_json(limits)}, {"results", list}};
  return all.dump(2) + "\n";
}

}  // namespace tidekv::micro
