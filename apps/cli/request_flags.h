// Flags that commands share: the model, how the prompt becomes a cache, sampling, reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "flags.h"
#include "output.h"
#include "prompt.h"
#include "tidekv/engine.h"
#include "tidekv/options.h"
#include "tidekv/result.h"

namespace tidekv::cli {

struct ModelFlags {
  std::optional<std::string> path;
  EngineOptions engine;
};

void add_model_flags(Flags& flags, ModelFlags& model);
void add_threads_flag(Flags& flags, ModelFlags& model);

// A usage error if there is no -m.
Status check_model_flags(const ModelFlags& flags);

// The model, or what is wrong with the path.
Result<Engine> load_engine(const ModelFlags& flags);

void add_budget_flag(Flags& flags, PrefillOptions& prefill);

// Everything else that changes bytes, but for the method. -n -1 is max_new_tokens = -1: up to the
// context.
void add_prefill_flags(Flags& flags, PrefillOptions& prefill);

struct SamplingFlags {
  SamplingOptions options;
  bool ignore_eos = false;
};

void add_sampling_flags(Flags& flags, SamplingFlags& sampling);

enum class ReportFormat : std::uint8_t { kByFileName, kText, kJson };

struct ReportFlags {
  ReportFormat format = ReportFormat::kByFileName;
  std::optional<std::string> file;
  std::optional<std::string> timeline_file;

  // kByFileName: JSON for a report file whose name ends in .json, else text.
  bool json() const;
};

void add_report_flags(Flags& flags, ReportFlags& report);

// Refuses report and timeline paths that would overwrite the model or the prompt.
Status check_report_paths(const ReportFlags& report, const ModelFlags& model,
                          const PromptFlags& prompt);
// Report and timeline.
Result<OutputFiles> open_reports(const ReportFlags& report);

}  // namespace tidekv::cli
