// Runs one request on a real backend: plan, reserve, prefill, generate, report.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

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

// Refuses ids that the vocabulary does not have.
Status check_token_ids(std::span<const std::int32_t> prompt, std::int64_t vocab_size);

// Passes progress on with the seconds since this call; empty if nobody asked for it.
std::function<void(const PrefillProgress&)> progress_callback(const Callbacks& callbacks,
                                                              std::int64_t prompt_len);

Result<RunReport> run_request(const RunContext& context, const Request& request,
                              const Callbacks& callbacks);

}  // namespace tidekv
