// The paper's Fig. 6 from our numbers: drift by chunk and by budget, as one SVG without scripts
// that is readable on light and dark ground.
#pragma once

#include <string>

#include "fidelity_results.h"

namespace tidekv::cli {

std::string fidelity_svg(const FidelityResults& results);

}  // namespace tidekv::cli
