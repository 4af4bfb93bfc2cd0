// Plans and runs as tables for people.
#pragma once

#include <string>
#include <vector>

#include "tidekv/engine.h"
#include "tidekv/memory_report.h"

namespace tidekv::cli {

// "kept 1,024 of 16,384 tokens a layer", with the range where layers or heads differ. `budget`
// tells whether the prompt fits it.
std::string kept_text(const std::vector<LayerRetention>& layers, const PrefillOptions& options);

// One column for each plan. All are of the same model, prompt and options but for the method.
std::string plan_text(const ModelInfo& model, const std::vector<PlanReport>& plans,
                      const PrefillOptions& options);

// Times, memory by component, digests if there are any.
std::string run_text(const RunReport& report);

}  // namespace tidekv::cli
