// paper_peak_memory: planned device memory of Llama-3.1-8B beside what the paper measured
// (Fig. 5, Table 5a: A100, FlashAttention-2, budget 4096, chunk 2048, BF16).
#include <array>
#include <cstdio>
#include <string>

#include "tidekv/engine.h"

namespace {

using tidekv::PlanReport;
using tidekv::Status;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

double gib(std::int64_t bytes) { return static_cast<double>(bytes) / kGiB; }

// The paper's numbers; negative where it gives none.
struct PaperRow {
  std::int64_t prompt_len;
  double snap_allocated_gib;
  double tide_allocated_gib;
  double allocated_reduction_percent;
};

constexpr std::array<PaperRow, 4> kPaper = {{{16384, -1, -1, 8.08},
                                             {32768, -1, -1, 15.53},
                                             {65536, 15.466 + 7.281, 15.466 + 1.173, 26.85},
                                             {131072, 30.0, 17.6, 41.3}}};

std::string number(double value, int decimals) {
  if (value < 0) {
    return "-";
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%.*f", decimals, value);
  return text;
}

tidekv::Result<PlanReport> plan(const char* method, std::int64_t prompt_len) {
  tidekv::PrefillOptions options;
  options.method = method;
  options.chunk_len = 2048;
  options.max_new_tokens = prompt_len == 131072 ? 0 : 32;  // the context ends at 128K
  return tidekv::plan_shape("llama-3.1-8b", {.num_threads = 2}, options, prompt_len);
}

Status print_row(const PaperRow& paper) {
  TIDEKV_ASSIGN(const PlanReport tide, plan("tidekv-snap", paper.prompt_len));
  TIDEKV_ASSIGN(const PlanReport snap, plan("snapkv", paper.prompt_len));
  TIDEKV_ASSIGN(const PlanReport full, plan("full", paper.prompt_len));
  const double reduction = 100.0 * (1.0 - static_cast<double>(tide.memory.peak_bytes) /
                                              static_cast<double>(snap.memory.peak_bytes));
  std::printf("| %lldK | %.3f | %.3f | %s | %.3f | %.3f | %s | %.2f %% | %s %% | %.3f |\n",
              static_cast<long long>(paper.prompt_len / 1024), gib(tide.memory.transient_bytes),
              gib(tide.memory.peak_bytes), number(paper.tide_allocated_gib, 3).c_str(),
              gib(snap.memory.transient_bytes), gib(snap.memory.peak_bytes),
              number(paper.snap_allocated_gib, 3).c_str(), reduction,
              number(paper.allocated_reduction_percent, 2).c_str(), gib(full.memory.peak_bytes));
  return tidekv::Ok{};
}

}  // namespace

int main() {
  std::puts(
      "| prompt | tidekv-snap transient | peak | paper, allocated | snapkv transient | peak |"
      " paper, allocated | peak reduction | paper | full peak |");
  std::puts("|---|---|---|---|---|---|---|---|---|---|");
  for (const PaperRow& row : kPaper) {
    const Status status = print_row(row);
    if (!status.ok()) {
      std::fprintf(stderr, "paper_peak_memory: %s\n", status.error().message.c_str());
      return 1;
    }
  }
  return 0;
}
