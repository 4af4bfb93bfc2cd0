// Allocates and accounts, never computes: the planner's backend.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"

namespace tidekv::dryrun {

// `workspace_bytes` is what the imitated backend asks for; `trace` receives every allocation in
// order with its lifetime and outlives the backend.
std::unique_ptr<Backend> create(const BackendOptions& options, std::int64_t workspace_bytes,
                                std::vector<TracedAllocation>* trace);

}  // namespace tidekv::dryrun
