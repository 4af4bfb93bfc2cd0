// paper_peak_memory: planned device memory of Llama-3.1-8B beside what the paper measured (A100,
// budget 4096, chunk 2048, BF16): with FlashAttention-2 (Fig. 5), then with what other
// implementations of attention hold (Table 5a).
#include <array>
#include <cstdio>
#include <string>

#include "tidekv/engine.h"

namespace {

using tidekv::AttentionImplementation;
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

tidekv::Result<PlanReport> plan(const char* method, std::int64_t prompt_len,
                                tidekv::PrefillOptions options = {}) {
  options.method = method;
  options.chunk_len = 2048;
  options.max_new_tokens = prompt_len == 131072 ? 0 : 32;  // the context ends at 128K
  return tidekv::plan_shape("llama-3.1-8b", {.num_threads = 2}, options, prompt_len);
}

double reduction_percent(const PlanReport& from, const PlanReport& to) {
  return 100.0 * (1.0 - static_cast<double>(to.memory.peak_bytes) /
                            static_cast<double>(from.memory.peak_bytes));
}

Status print_row(const PaperRow& paper) {
  TIDEKV_ASSIGN(const PlanReport tide, plan("tidekv-snap", paper.prompt_len));
  TIDEKV_ASSIGN(const PlanReport snap, plan("snapkv", paper.prompt_len));
  TIDEKV_ASSIGN(const PlanReport full, plan("full", paper.prompt_len));
  TIDEKV_ASSIGN(const PlanReport tiled, plan("snapkv", paper.prompt_len, {.mlp_tile_len = 256}));
  std::printf("| %lldK | %.3f | %.3f | %s | %.3f | %.3f | %s | %.2f %% | %s %% |",
              static_cast<long long>(paper.prompt_len / 1024), gib(tide.memory.transient_bytes),
              gib(tide.memory.peak_bytes), number(paper.tide_allocated_gib, 3).c_str(),
              gib(snap.memory.transient_bytes), gib(snap.memory.peak_bytes),
              number(paper.snap_allocated_gib, 3).c_str(), reduction_percent(snap, tide),
              number(paper.allocated_reduction_percent, 2).c_str());
  std::printf(" %.3f | %.3f | %.2f %% | %.3f |\n", gib(tiled.memory.transient_bytes),
              gib(tiled.memory.peak_bytes), reduction_percent(tiled, tide),
              gib(full.memory.peak_bytes));
  return tidekv::Ok{};
}

// What Table 5a says of one implementation, in words where it gives no number.
struct PaperAttention {
  const char* name;
  AttentionImplementation attention;
  std::array<const char*, 4> reduction;  // at 8K, 16K, 32K, 64K
};

constexpr std::array<PaperAttention, 3> kPaperAttention = {
    {{"flash", AttentionImplementation::kFlash, {"3.74 %", "8.08 %", "15.53 %", "26.85 %"}},
     {"masked", AttentionImplementation::kMasked, {"3.55 %", "7.04 %", "12.96 %", "21.94 %"}},
     {"eager", AttentionImplementation::kEager, {"snapkv OOM", "snapkv OOM", "-", "-"}}}};

Status print_attention_row(const PaperAttention& paper, std::size_t at) {
  const std::int64_t prompt_len = std::int64_t{8192} << at;
  const tidekv::PrefillOptions options = {.attention = paper.attention};
  TIDEKV_ASSIGN(const PlanReport tide, plan("tidekv-snap", prompt_len, options));
  TIDEKV_ASSIGN(const PlanReport snap, plan("snapkv", prompt_len, options));
  std::printf("| %s | %lldK | %.3f | %.3f | %.3f | %.3f | %.2f %% | %s |\n", paper.name,
              static_cast<long long>(prompt_len / 1024), gib(tide.memory.transient_bytes),
              gib(tide.memory.peak_bytes), gib(snap.memory.transient_bytes),
              gib(snap.memory.peak_bytes), reduction_percent(snap, tide), paper.reduction[at]);
  return tidekv::Ok{};
}

Status print_flash_attention() {
  std::puts(
      "| prompt | tidekv-snap transient | peak | paper, allocated | snapkv transient | peak |"
      " paper, allocated | peak reduction | paper | snapkv, MLP tiled, transient | peak |"
      " peak reduction | full peak |");
  std::puts("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
  for (const PaperRow& row : kPaper) {
    TIDEKV_TRY(print_row(row));
  }
  return tidekv::Ok{};
}

Status print_implementations() {
  std::puts(
      "| attention | prompt | tidekv-snap transient | peak | snapkv transient | peak |"
      " peak reduction | paper |");
  std::puts("|---|---|---|---|---|---|---|---|");
  for (const PaperAttention& paper : kPaperAttention) {
    for (std::size_t at = 0; at < paper.reduction.size(); ++at) {
      TIDEKV_TRY(print_attention_row(paper, at));
    }
  }
  return tidekv::Ok{};
}

Status print_tables() {
  TIDEKV_TRY(print_flash_attention());
  std::puts("");
  return print_implementations();
}

}  // namespace

int main() {
  const Status status = print_tables();
  if (!status.ok()) {
    std::fprintf(stderr, "paper_peak_memory: %s\n", status.error().message.c_str());
    return 1;
  }
  return 0;
}
