#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace tidekv {
namespace {

std::uint64_t seed_of(const SamplingOptions& options) {
  if (options.seed >= 0) {
    return static_cast<std::uint64_t>(options.seed);
  }
  std::random_device entropy;
  return (static_cast<std::uint64_t>(entropy()) << 32) | entropy();
}

Error refuse(const char* flag, double value, const char* expected) {
  return Error{ErrorCode::kInvalidArgument,
               std::string(flag) + " " + std::to_string(value) + ": expected " + expected};
}

}  // namespace

Status check_sampling_options(const SamplingOptions& options) {
  if (!(options.temperature >= 0) || std::isinf(options.temperature)) {
    return refuse("--temp", options.temperature, "0 (greedy) or more");
  }
  if (options.top_k < 0) {
    return refuse("--top-k", options.top_k, "0 (off) or more");
  }
  if (!(options.top_p > 0 && options.top_p <= 1)) {
    return refuse("--top-p", options.top_p, "more than 0, at most 1 (off)");
  }
  if (!(options.min_p >= 0 && options.min_p <= 1)) {
    return refuse("--min-p", options.min_p, "0 (off) to 1");
  }
  if (!(options.repeat_penalty > 0) || std::isinf(options.repeat_penalty)) {
    return refuse("--repeat-penalty", options.repeat_penalty, "more than 0; 1 is off");
  }
  if (options.repeat_last_n < -1) {
    return refuse("--repeat-last-n", options.repeat_last_n, "-1 (all), 0 (off) or more");
  }
  return Ok{};
}

SamplingOptions with_own_seed(SamplingOptions options) {
  options.seed = static_cast<std::int64_t>(seed_of(options) & INT64_MAX);
  return options;
}

Sampler::Sampler(const SamplingOptions& options, std::int64_t vocab_size)
    : options_(options),
      random_(seed_of(options)),
      penalised_(static_cast<std::size_t>(vocab_size)) {
  candidates_.reserve(static_cast<std::size_t>(vocab_size));
}

Result<std::int32_t> Sampler::sample(std::span<const float> logits,
                                     std::span<const std::int32_t> history) {
  candidates_.clear();
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (std::isfinite(logits[id])) {
      candidates_.push_back({static_cast<std::int32_t>(id), logits[id], 0});
    }
  }
  if (candidates_.empty()) {
    return Error{ErrorCode::kBadFile,
                 "the model's output has no finite number: a weight is NaN or infinite "
                 "(--check-tensors finds which), or values exceed the range of this --dtype"};
  }
  penalise(history);
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  };
  if (options_.temperature <= 0) {
    return std::min_element(candidates_.begin(), candidates_.end(), better)->id;
  }
  std::sort(candidates_.begin(), candidates_.end(), better);
  keep_top_k();
  keep_top_p();
  keep_min_p();
  weigh(options_.temperature);
  return draw();
}

// As in CTRL (Keskar et al.): positive logits are divided, negative ones multiplied.
void Sampler::penalise(std::span<const std::int32_t> history) {
  if (options_.repeat_penalty == 1.0F || options_.repeat_last_n == 0) {
    return;
  }
  const std::size_t reach =
      options_.repeat_last_n < 0
          ? history.size()
          : std::min(history.size(), static_cast<std::size_t>(options_.repeat_last_n));
  std::fill(penalised_.begin(), penalised_.end(), false);
  for (const std::int32_t id : history.last(reach)) {
    penalised_[static_cast<std::size_t>(id)] = true;
  }
  for (Candidate& candidate : candidates_) {
    if (penalised_[static_cast<std::size_t>(candidate.id)]) {
      candidate.logit = candidate.logit > 0 ? candidate.logit / options_.repeat_penalty
                                            : candidate.logit * options_.repeat_penalty;
    }
  }
}

void Sampler::keep_top_k() {
  if (options_.top_k > 0 && candidates_.size() > static_cast<std::size_t>(options_.top_k)) {
    candidates_.resize(static_cast<std::size_t>(options_.top_k));
  }
}

// Softmax numerators at a temperature, over the candidates left; they are sorted.
void Sampler::weigh(double temperature) {
  const double best = candidates_.front().logit;
  for (Candidate& candidate : candidates_) {
    candidate.weight = std::exp((static_cast<double>(candidate.logit) - best) / temperature);
  }
}

// The shortest head whose probability reaches top_p.
void Sampler::keep_top_p() {
  if (options_.top_p >= 1.0F) {
    return;
  }
  weigh(1.0);
  double total = 0;
  for (const Candidate& candidate : candidates_) {
    total += candidate.weight;
  }
  double sum = 0;
  for (std::size_t count = 0; count < candidates_.size(); ++count) {
    sum += candidates_[count].weight;
    if (sum >= static_cast<double>(options_.top_p) * total) {
      candidates_.resize(count + 1);
      return;
    }
  }
}

// Candidates at least min_p times as likely as the best.
void Sampler::keep_min_p() {
  if (options_.min_p <= 0.0F) {
    return;
  }
  weigh(1.0);
  const auto too_unlikely = [this](const Candidate& candidate) {
    return candidate.weight < static_cast<double>(options_.min_p);
  };
  candidates_.erase(std::find_if(candidates_.begin(), candidates_.end(), too_unlikely),
                    candidates_.end());
}

std::int32_t Sampler::draw() {
  double total = 0;
  for (const Candidate& candidate : candidates_) {
    total += candidate.weight;
  }
  // 53 random bits: the same on every platform, unlike std::uniform_real_distribution.
  double left = static_cast<double>(random_() >> 11) * 0x1p-53 * total;
  for (const Candidate& candidate : candidates_) {
    left -= candidate.weight;
    if (left < 0) {
      return candidate.id;
    }
  }
  return candidates_.back().id;
}

}  // namespace tidekv
