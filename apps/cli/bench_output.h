// Results of a benchmark in the forms llama-bench writes, with the same names of columns and keys,
// and those of memory beside them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench_case.h"

namespace tidekv::cli {

enum class BenchFormat : std::uint8_t { kNone, kMarkdown, kCsv, kJson, kJsonLines };

// What varies between the cases of one run: Markdown leaves out columns that do not.
struct BenchVariation {
  bool budget = false;
  bool chunk = false;
  bool dtype = false;
};

// Text, piece by piece, so that results show as they come.
class BenchOutput {
 public:
  BenchOutput() = default;
  BenchOutput(const BenchOutput&) = delete;
  BenchOutput& operator=(const BenchOutput&) = delete;
  virtual ~BenchOutput() = default;

  virtual std::string head() { return ""; }
  virtual std::string row(const BenchResult& result) = 0;
  // Also after a failure: what was written is then still one whole document.
  virtual std::string foot() { return ""; }
};

// Null for kNone.
std::unique_ptr<BenchOutput> make_bench_output(BenchFormat format, const BenchVariation& varied);

}  // namespace tidekv::cli
