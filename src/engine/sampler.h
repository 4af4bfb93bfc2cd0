// From logits to the next token.
//
// The order is llama.cpp's: repeat penalty, top-k, top-p, min-p, temperature. Every filter keeps at
// least one candidate; ties go to the lower id.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "tidekv/options.h"
#include "tidekv/result.h"

namespace tidekv {

class Sampler {
 public:
  Sampler(const SamplingOptions& options, std::int64_t vocab_size);

  // `history`: prompt and generated tokens so far, evicted ones included. An error if no logit is a
  // finite number.
  Result<std::int32_t> sample(std::span<const float> logits, std::span<const std::int32_t> history);

 private:
  struct Candidate {
    std::int32_t id = 0;
    float logit = 0;
    double weight = 0;
  };

  void penalise(std::span<const std::int32_t> history);
  void keep_top_k();
  void keep_top_p();
  void keep_min_p();
  void weigh(double temperature);
  std::int32_t draw();

  SamplingOptions options_;
  std::mt19937_64 random_;
  std::vector<Candidate> candidates_;  // reused; never grows after construction
  std::vector<bool> penalised_;
};

// The same options with a seed drawn now where they name none: several samplers then agree.
SamplingOptions with_own_seed(SamplingOptions options);

// Refuses values outside their range, naming the flag.
Status check_sampling_options(const SamplingOptions& options);

}  // namespace tidekv
