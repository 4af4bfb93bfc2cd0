#include "measurement.h"

#include <algorithm>
#include <chrono>

namespace tidekv::micro {
namespace {

using Clock = std::chrono::steady_clock;

Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

// One resource over the rounds.
class UsageOverRounds {
 public:
  explicit UsageOverRounds(double amount) : amount_(amount) {}

  bool wanted() const { return amount_ > 0; }
  void add(double call_seconds, double limit) {
    rates_.push_back(amount_ / call_seconds);
    limits_.push_back(limit);
    shares_.push_back(amount_ / call_seconds / limit);
  }
  std::optional<Usage> usage() const {
    if (!wanted()) {
      return std::nullopt;
    }
    return Usage{spread_of(rates_), spread_of(limits_), spread_of(shares_)};
  }

 private:
  double amount_;  // of one call
  std::vector<double> rates_;
  std::vector<double> limits_;
  std::vector<double> shares_;
};

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  Clock::time_point start_ = Clock::now();
};

}  // namespace

Measurement measure(const Case& measured, Device& device, Limits& limits, double seconds) {
  constexpr std::int64_t kRounds = 10;
  constexpr std::int64_t kLeastRounds = 3;
  constexpr double kLimitSeconds = 0.02;  // longest look at a limit
  const std::unique_ptr<Operation> operation = measured.prepare(device);
  std::int64_t call = 0;
  const auto seconds_of_calls = [&](std::int64_t count) {
    const Stopwatch watch;
    for (std::int64_t i = 0; i < count; ++i) {
      operation->run(call++);
    }
    static_cast<void>(device.backend().synchronize());  // a CPU has nothing to report
    return watch.seconds() / static_cast<double>(count);
  };

  Measurement result;
  const double slice = seconds / kRounds;
  double warm = seconds_of_calls(1);
  if (seconds > 0) {
    warm = std::min(warm, seconds_of_calls(1));
  }
  result.calls_per_round = std::max<std::int64_t>(1, static_cast<std::int64_t>(slice / warm));
  UsageOverRounds arithmetic(measured.cost.flops);
  UsageOverRounds memory(measured.cost.bytes);
  std::vector<double> times;
  const Stopwatch whole;
  do {
    const double limit_seconds = std::min(slice, kLimitSeconds);
    const double peak = arithmetic.wanted() ? limits.arithmetic(limit_seconds) : 0;
    const double bandwidth = memory.wanted() ? limits.bandwidth(limit_seconds) : 0;
    times.push_back(seconds_of_calls(result.calls_per_round));
    if (arithmetic.wanted()) {
      arithmetic.add(times.back(), peak);
    }
    if (memory.wanted()) {
      memory.add(times.back(), bandwidth);
    }
    result.num_rounds += 1;
  } while (seconds > 0 && (result.num_rounds < kLeastRounds || whole.seconds() < seconds));
  result.call_seconds = spread_of(times);
  result.arithmetic = arithmetic.usage();
  result.memory = memory.usage();
  return result;
}

}  // namespace tidekv::micro
