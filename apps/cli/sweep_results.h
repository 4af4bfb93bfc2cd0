// What a sweep found: which answers were right, and the means over all prompts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sweep_prompts.h"
#include "tidekv/sweep.h"

namespace tidekv::cli {

struct PromptResult {
  std::string id;
  bool scored = false;  // its line has an answer
  SweepReport report;
  std::vector<bool> right;  // of each target, if scored
};

struct SweepResults {
  std::string model;
  std::string backend;
  std::vector<SweepTarget> targets;
  std::size_t num_prefills = 1;       // of each prompt
  std::size_t num_prompts = 0;        // in the file
  std::vector<PromptResult> prompts;  // those that ran

  bool complete() const { return prompts.size() == num_prompts; }
  std::int64_t num_scored() const;
};

// 95 % interval of a share by Wilson, in percent.
struct Interval {
  double low = 0;
  double high = 0;
};
Interval wilson_interval(std::int64_t right, std::int64_t count);

// Targets by number that one prefill serves: all that can share one, and each other alone.
using PrefillGroup = std::vector<std::size_t>;
std::vector<PrefillGroup> prefill_groups(const std::vector<SweepTarget>& targets);

// What the prefills of one prompt gave, as if it had been one sweep: one after the other, so that
// the memory is that of the one that needed most. `parts` belong to the groups in their order.
SweepReport joined(const std::vector<PrefillGroup>& groups, std::vector<SweepReport> parts);

// One method and budget over the prompts that ran.
struct TargetSummary {
  std::int64_t right = 0;             // of num_scored()
  double kept = 0;                    // tokens a layer and KV head, on average
  std::int64_t alone_peak_bytes = 0;  // the largest that a request of its own would need
  double prefill_seconds = 0;         // of a prompt on average
  double decode_tokens = 0;           // steps after the first token, and their time
  double decode_seconds = 0;
};
TargetSummary summary_of(const SweepResults& results, std::size_t target);

// Whether `text` says all of `answers`; A to Z and a to z are the same.
bool says_all(std::string_view text, const std::vector<std::string>& answers);

}  // namespace tidekv::cli
