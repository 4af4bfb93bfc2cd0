#include "engine/divergence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace tidekv {

Drift row_drift(std::span<const double> row, std::span<const double> reference) {
  TIDEKV_CHECK_OP(row.size(), ==, reference.size());
  if (std::equal(row.begin(), row.end(), reference.begin())) {
    return {};
  }
  double difference = 0;
  double product = 0;
  double row_square = 0;
  double reference_square = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const double step = row[i] - reference[i];
    difference += step * step;
    product += row[i] * reference[i];
    row_square += row[i] * row[i];
    reference_square += reference[i] * reference[i];
  }
  Drift drift;
  drift.relative_l2 = std::sqrt(difference / reference_square);
  const double norms = std::sqrt(row_square) * std::sqrt(reference_square);
  drift.cosine = norms == 0 ? 0 : product / norms;
  return drift;
}

std::vector<double> log_softmax(std::span<const float> logits) {
  std::vector<double> log_p(logits.begin(), logits.end());
  const double largest = *std::max_element(log_p.begin(), log_p.end());
  double sum = 0;
  for (const double logit : log_p) {
    sum += std::exp(logit - largest);
  }
  const double log_sum = std::log(sum);
  for (double& value : log_p) {
    value = value - largest - log_sum;
  }
  return log_p;
}

double kl_divergence(std::span<const double> log_p, std::span<const double> log_q) {
  TIDEKV_CHECK_OP(log_p.size(), ==, log_q.size());
  double sum = 0;
  for (std::size_t i = 0; i < log_p.size(); ++i) {
    const double p = std::exp(log_p[i]);
    sum += p == 0 ? 0 : p * (log_p[i] - log_q[i]);
  }
  return std::max(sum, 0.0);  // rounding may leave a hair less than nothing
}

double js_divergence(std::span<const double> log_p, std::span<const double> log_q) {
  TIDEKV_CHECK_OP(log_p.size(), ==, log_q.size());
  const auto from_mean = [](double p, double mean) { return p == 0 ? 0 : p * std::log(p / mean); };
  double sum = 0;
  for (std::size_t i = 0; i < log_p.size(); ++i) {
    const double p = std::exp(log_p[i]);
    const double q = std::exp(log_q[i]);
    const double mean = (p + q) / 2;
    sum += from_mean(p, mean) + from_mean(q, mean);
  }
  return std::max(sum / 2, 0.0);
}

std::size_t likeliest(std::span<const double> log_p) {
  return static_cast<std::size_t>(std::max_element(log_p.begin(), log_p.end()) - log_p.begin());
}

}  // namespace tidekv
