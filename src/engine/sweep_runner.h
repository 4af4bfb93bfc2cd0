// Runs a sweep on a real backend: plan, reserve, prefill once, continue every cache, report.
#pragma once

#include "engine/request_runner.h"
#include "tidekv/sweep.h"

namespace tidekv {

Result<SweepReport> run_sweep(const RunContext& context, const SweepRequest& request,
                              const Callbacks& callbacks);

}  // namespace tidekv
