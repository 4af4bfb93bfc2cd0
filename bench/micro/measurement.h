// How fast an operation is, beside what the machine could do at that moment.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cases.h"
#include "machine_limits.h"

namespace tidekv::micro {

// The middle and the ends of what the rounds gave.
struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

// Of one resource: rates a second, and rate over limit in the same round.
struct Usage {
  Spread rate;
  Spread limit;
  Spread share;

  // The best round over the best the limit was: what other programs disturb least.
  double best_share() const { return rate.most / limit.most; }
};

struct Measurement {
  std::optional<Usage> arithmetic;  // floating-point operations
  std::optional<Usage> memory;      // bytes
  Spread call_seconds;
  std::int64_t num_rounds = 0;
  std::int64_t calls_per_round = 0;
};

// Takes about `seconds`, and three rounds at least; 0: one call.
Measurement measure(const Case& measured, Device& device, Limits& limits, double seconds);

}  // namespace tidekv::micro
