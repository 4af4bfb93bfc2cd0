// The results of `tidekv bench fidelity` as tables or as data.
#pragma once

#include <cstdint>
#include <string>

#include "fidelity_results.h"

namespace tidekv::cli {

enum class FidelityFormat : std::uint8_t { kMarkdown, kJson };

std::string fidelity_text(FidelityFormat format, const FidelityResults& results);

}  // namespace tidekv::cli
