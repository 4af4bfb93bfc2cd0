// How faithful a method is to the full cache: Table 8, Fig. 6 and Eq. (3) of the paper, on one
// prompt.
//
// The reference is `full`, the whole prompt at once. Every other prefill is compared with it row by
// row, after every layer; then every cache is given the reference's own greedy continuation, token
// by token, and what it expects next is compared with what the full cache expects. Arithmetic is in
// double. What is equal bit for bit counts as exactly 0 (distance, divergence) or 1 (cosine).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tidekv/options.h"
#include "tidekv/result.h"
#include "tidekv/sweep.h"

namespace tidekv {

struct FidelityRequest {
  std::vector<std::int32_t> prompt;
  // But for method and budget, which the targets name; `all_rows` and `max_new_tokens` do not
  // matter. A chunk_len of 0 is kDefaultChunkLen, for every method.
  PrefillOptions prefill;
  std::vector<SweepTarget> targets;  // any method
  std::int64_t num_next = 64;        // tokens of the continuation, the first included

  static constexpr std::int64_t kDefaultChunkLen = 512;  // the paper's, Table 8
};

// Of hidden rows from the reference's. A row's distance is |x - r| / |r|; of several rows it is the
// mean, so that no row with a large norm (a sink's) hides the others.
struct Drift {
  double relative_l2 = 0;
  double cosine = 1;
};

// Eq. (3), Q being the mean log-probability, in nats, that a cache gives the tokens of the full
// cache's continuation. The control is the same selector, cutting when the prompt was seen.
struct Eq3Terms {
  double full_minus_control = 0;    // what selection changes
  double control_minus_method = 0;  // what the schedule changes beside it
  double sum = 0;                   // of the two: full minus method
};

struct TargetFidelity {
  std::string method;
  std::int64_t budget = 0;
  std::string control;      // the method that is the control
  std::size_t prefill = 0;  // 0: the reference's own; targets with the same number share one
  double prefill_seconds = 0;

  Drift hidden;               // mean over layers
  std::vector<Drift> layers;  // [num_layers]: mean over the rows that left the layer
  std::vector<Drift>
      chunks;  // mean over the rows of each chunk_len tokens of the prompt, and layers
  std::int64_t num_rows = 0;
  std::int64_t num_equal_rows = 0;  // bit for bit

  bool top1_agrees = true;   // likeliest token after the prompt
  double js_divergence = 0;  // of the prefills' next-token distributions, in nats
  // Of each token of the continuation: KL(full, this cache), in nats. The first comes from the
  // prefill; the others from decoding.
  std::vector<double> kl_divergence;
  double log_probability = 0;  // mean over the continuation
  Eq3Terms eq3;
};

struct FidelityReport {
  std::int64_t prompt_len = 0;
  std::int64_t chunk_len = 0;
  std::string compute_type;                // of activations and caches: bf16 or f32
  std::vector<std::int32_t> continuation;  // greedy, past ends of text
  double log_probability = 0;              // of it, with the full cache
  double prefill_seconds = 0;              // of the reference
  std::int64_t reference_bytes = 0;        // host memory for its rows and distributions
  std::int64_t peak_bytes = 0;             // that and the largest peak of a prefill's ledger
  std::size_t num_prefills = 0;            // the reference's included
  std::vector<TargetFidelity> targets;     // in the request's order
};

}  // namespace tidekv
