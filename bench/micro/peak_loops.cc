#include "peak_loops.h"

#include <array>

namespace tidekv::micro {
namespace {

constexpr std::int64_t kChains = 12;  // independent sums: more than latency times throughput

// What the compiler makes of plain C++ for the oldest CPU this build may run on.
void run_portable(std::int64_t iterations) {
  using Lanes = float __attribute__((vector_size(16)));
  Lanes sums[kChains] = {};
  Lanes factor = {};
  Lanes addend = {};
  asm volatile("" : "+m"(factor), "+m"(addend));  // unknown to the compiler from here on
  for (std::int64_t i = 0; i < iterations; ++i) {
    for (Lanes& sum : sums) {
      sum = sum * factor + addend;
    }
  }
  for (Lanes& sum : sums) {
    asm volatile("" : "+m"(sum));
  }
}

bool always() { return true; }
constexpr PeakLoop kPortable{"plain C++", kChains * 4 * 2, always, run_portable};

#if defined(__x86_64__)

// Text of instructions, so that the compiler can neither spill nor reorder. Accumulators are
// registers 0 to 11, factors 14 and 15; all zero, so that no subnormal and no NaN slows the loop.
#define TIDEKV_ONE(op, lanes, n) op " %%" lanes "14, %%" lanes "15, %%" lanes #n "\n"
#define TIDEKV_TWELVE(op, lanes) \
  TIDEKV_ONE(op, lanes, 0)       \
  TIDEKV_ONE(op, lanes, 1)       \
  TIDEKV_ONE(op, lanes, 2)       \
  TIDEKV_ONE(op, lanes, 3)       \
  TIDEKV_ONE(op, lanes, 4)       \
  TIDEKV_ONE(op, lanes, 5)       \
  TIDEKV_ONE(op, lanes, 6)       \
  TIDEKV_ONE(op, lanes, 7)       \
  TIDEKV_ONE(op, lanes, 8)       \
  TIDEKV_ONE(op, lanes, 9) TIDEKV_ONE(op, lanes, 10) TIDEKV_ONE(op, lanes, 11)
#define TIDEKV_LOOP(op, lanes)                                                                   \
  asm volatile("vzeroall\n1:\n" TIDEKV_TWELVE(op, lanes)                                         \
                   TIDEKV_TWELVE(op, lanes) "dec %0\njnz 1b\nvzeroupper\n"                       \
               : "+r"(iterations)                                                                \
               :                                                                                 \
               : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
                 "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc")

constexpr std::int64_t kOps = 2 * kChains;  // of one iteration

void run_fma_ymm(std::int64_t iterations) { TIDEKV_LOOP("vfmadd231ps", "ymm"); }
void run_fma_zmm(std::int64_t iterations) { TIDEKV_LOOP("vfmadd231ps", "zmm"); }
void run_bf16_dot(std::int64_t iterations) { TIDEKV_LOOP("vdpbf16ps", "zmm"); }

bool has_fma() { return __builtin_cpu_supports("fma") != 0 && __builtin_cpu_supports("avx2") != 0; }
bool has_avx512() { return __builtin_cpu_supports("avx512f") != 0; }
bool has_bf16() { return has_avx512() && __builtin_cpu_supports("avx512bf16") != 0; }

constexpr std::array<PeakLoop, 4> kLoops = {{
    {"vdpbf16ps zmm", kOps * 32 * 2, has_bf16, run_bf16_dot},
    {"vfmadd231ps zmm", kOps * 16 * 2, has_avx512, run_fma_zmm},
    {"vfmadd231ps ymm", kOps * 8 * 2, has_fma, run_fma_ymm},
    kPortable,
}};

#else

constexpr std::array<PeakLoop, 1> kLoops = {kPortable};

#endif

}  // namespace

std::span<const PeakLoop> peak_loops() { return kLoops; }

}  // namespace tidekv::micro
