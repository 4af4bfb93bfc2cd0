// Runs a fidelity comparison on a real backend: the reference, then every other prefill against it.
#pragma once

#include "engine/request_runner.h"
#include "tidekv/fidelity.h"

namespace tidekv {

Result<FidelityReport> run_fidelity(const RunContext& context, const FidelityRequest& request,
                                    const Callbacks& callbacks);

}  // namespace tidekv
