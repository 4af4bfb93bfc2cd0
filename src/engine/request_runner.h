// Runs one request on a real backend: plan, reserve, prefill, generate, report.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "engine/planner.h"
#include "text/tokenizer.h"
#include "tidekv/engine.h"

namespace tidekv {

struct RunContext {
  ModelContext model;
  const Tokenizer* tokenizer = nullptr;
  ThreadPool* pool = nullptr;
  std::int64_t fail_allocation = -1;  // tests: see BackendOptions
};

Result<RunReport> run_request(const RunContext& context, const Request& request,
                              const Callbacks& callbacks);

}  // namespace tidekv
