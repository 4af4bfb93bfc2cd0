// Loops of multiply-adds whose operands never leave the registers: what this machine's arithmetic
// can do for BF16 products, whichever instruction is the fastest. No product can beat the best.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tidekv::micro {

struct PeakLoop {
  std::string_view name;
  double flops = 0;  // of one iteration
  bool (*available)();
  void (*run)(std::int64_t iterations);
};

// Every loop built in; call `run` only where `available`.
std::span<const PeakLoop> peak_loops();

}  // namespace tidekv::micro
