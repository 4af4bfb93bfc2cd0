#include "backend/registry.h"

#include <array>
#include <cstdlib>
#include <string>

#include "backend/cpu/cpu_backend.h"
#include "backend/dryrun/dryrun_backend.h"
#include "base/json_value.h"

namespace tidekv {
namespace {

bool always_available() { return true; }

constexpr std::array<BackendEntry, 4> kBackends = {{
    {"cpu-avx512-bf16", cpu::avx512_bf16_available, cpu::avx512_bf16_suits, cpu::create_avx512_bf16,
     cpu::workspace_bytes},
    {"cpu-avx512", cpu::avx512_available, cpu::avx512_available, cpu::create_avx512,
     cpu::workspace_bytes},
    {"cpu-avx2", cpu::avx2_available, cpu::avx2_available, cpu::create_avx2, cpu::workspace_bytes},
    {"cpu-portable", always_available, always_available, cpu::create_portable,
     cpu::workspace_bytes},
}};

}  // namespace

std::span<const BackendEntry> backend_entries() { return kBackends; }

Result<const BackendEntry*> choose_backend() {
  const char* wanted = std::getenv("TIDEKV_BACKEND");
  std::string choices;
  for (const BackendEntry& entry : kBackends) {
    if (!entry.available()) {
      continue;
    }
    const bool unnamed = wanted == nullptr || *wanted == '\0';
    if (unnamed ? entry.suits() : entry.name == wanted) {
      return &entry;
    }
    choices += (choices.empty() ? "" : ", ") + std::string(entry.name);
  }
  return Error{ErrorCode::kInvalidArgument, "TIDEKV_BACKEND: no backend " +
                                                in_quotes(wanted != nullptr ? wanted : "") +
                                                " on this machine; choose from " + choices};
}

std::unique_ptr<Backend> create_dry_run(const BackendEntry& target, int num_threads,
                                        const BackendOptions& options, std::int64_t head_dim,
                                        std::vector<TracedAllocation>* trace) {
  return dryrun::create(options, target.workspace_bytes(num_threads, head_dim), trace);
}

}  // namespace tidekv
