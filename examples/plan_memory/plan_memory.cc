// What will a prompt of this length need, by method? Exact to the byte, before any weight is
// loaded: the real schedule runs on a device that allocates and never computes.
//
// Usage: plan_memory SHAPE PROMPT_LEN BUDGET     e.g. plan_memory llama-3.1-8b 65536 4096
#include <cstdint>
#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <string>

#include "tidekv/engine.h"

namespace {

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0); }

// One line: the peak, what is left of it after prefill, and what only building the cache needed.
tidekv::Status print_plan(const std::string& shape, const std::string& method,
                          std::int64_t prompt_len, std::int64_t budget) {
  tidekv::PrefillOptions options;
  options.method = method;
  options.budget = budget;
  TIDEKV_ASSIGN(const auto plan, tidekv::plan_shape(shape, {}, options, prompt_len));
  std::cout << std::left << std::setw(12) << method << std::right << std::fixed
            << std::setprecision(3) << " peak " << gib(plan.memory.peak_bytes) << " GiB, cache "
            << gib(plan.memory.final_cache_bytes) << " GiB, transient "
            << gib(plan.memory.transient_bytes) << " GiB\n";
  return tidekv::Ok{};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: plan_memory SHAPE PROMPT_LEN BUDGET\n";
    return 2;
  }
  for (const char* method : {"tidekv-snap", "snapkv", "full"}) {
    const auto status = print_plan(argv[1], method, std::atoll(argv[2]), std::atoll(argv[3]));
    if (!status.ok()) {
      std::cerr << status.error().message << '\n';
      return 1;
    }
  }
  return 0;
}
