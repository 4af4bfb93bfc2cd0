// Backends by name. A new backend is one folder and one line in registry.cc.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace tidekv {

struct BackendEntry {
  std::string_view name;
  // True where this machine can run it.
  bool (*available)();
  // True where it is also the best of its kind; decided by the processor's family and features,
  // never by a timing, so that results repeat.
  bool (*suits)();
  std::unique_ptr<Backend> (*create)(const BackendOptions& options);
  // What Backend::workspace_bytes of an instance with this many threads says.
  std::int64_t (*workspace_bytes)(int num_threads, std::int64_t head_dim);
};

// Every backend built in, the best first.
std::span<const BackendEntry> backend_entries();

// The first that suits the machine, or the one TIDEKV_BACKEND names; an unknown or unavailable name
// is an error that lists the choices.
Result<const BackendEntry*> choose_backend();

// A backend that allocates and accounts like `target` with `num_threads` threads, and never
// computes: the planner's. `trace` outlives it.
std::unique_ptr<Backend> create_dry_run(const BackendEntry& target, int num_threads,
                                        const BackendOptions& options, std::int64_t head_dim,
                                        std::vector<TracedAllocation>* trace);

}  // namespace tidekv
