// Results of a sweep as a table, or as data with every answer.
#pragma once

#include <cstdint>
#include <string>

#include "sweep_results.h"

namespace tidekv::cli {

enum class SweepFormat : std::uint8_t { kMarkdown, kCsv, kJson, kJsonLines };

// One prompt's line of kJsonLines, as soon as it is done; empty in the other forms.
std::string prompt_text(SweepFormat format, const SweepResults& results,
                        const PromptResult& prompt);

// All that comes at the end: of kJsonLines the last line. Says so if not every prompt ran.
std::string results_text(SweepFormat format, const SweepResults& results);

}  // namespace tidekv::cli
