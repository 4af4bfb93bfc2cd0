#include "oracle/expected_attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "oracle/rounding.h"

namespace tidekv::oracle {
namespace {

double as_double(std::int64_t n) { return static_cast<double>(n); }

// The float angle of a position, as Transformers rounds it.
double angle_at(const HostTensor& inverse_freq, std::int64_t position, std::int64_t pair) {
  return static_cast<float>(position) * static_cast<float>(inverse_freq.at(0, pair));
}

// One head's queries before they were rotated.
std::vector<std::vector<double>> unrotated(const HostTensor& q, const HostTensor& inverse_freq,
                                           Position first, std::int64_t q_head) {
  const std::int64_t half = inverse_freq.cols();
  std::vector<std::vector<double>> rows;
  for (std::int64_t row = 0; row < q.rows(); ++row) {
    std::vector<double> x(static_cast<std::size_t>(2 * half));
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle = angle_at(inverse_freq, index_of(first) + row, i);
      const double left = q.at(row, (2 * q_head) * half + i);
      const double right = q.at(row, (2 * q_head + 1) * half + i);
      x[static_cast<std::size_t>(i)] = left * std::cos(angle) + right * std::sin(angle);
      x[static_cast<std::size_t>(half + i)] = right * std::cos(angle) - left * std::sin(angle);
    }
    rows.push_back(std::move(x));
  }
  return rows;
}

double largest_magnitude(const std::vector<std::vector<double>>& rows) {
  double largest = 0;
  for (const std::vector<double>& row : rows) {
    for (const double x : row) {
      largest = std::max(largest, std::abs(x));
    }
  }
  return largest;
}

}  // namespace

// X bounds all numbers. Turning back is off by the table's error and three roundings; a running
// mean takes four roundings of at most 2 X at each row, which the next rows do not enlarge. A
// product of differences is off by both differences' errors; the sum adds a rounding a row.
Expected query_moments(const HostTensor& q, const HostTensor& inverse_freq, Position first) {
  const std::int64_t dim = 2 * inverse_freq.cols();
  const std::int64_t num_q_heads = q.cols() / dim;
  const double n = as_double(q.rows());
  Expected out(num_q_heads * (dim + 1), dim);
  for (std::int64_t q_head = 0; q_head < num_q_heads; ++q_head) {
    const auto rows = unrotated(q, inverse_freq, first, q_head);
    const double most = largest_magnitude(rows);
    const double row_error = most * (2 * kTrigRounding + rounding_growth(4)) + kFloatTiny;
    const double mean_error = row_error + rounding_growth(8 * n + 8) * most;
    std::vector<double> mean(static_cast<std::size_t>(dim));
    for (const std::vector<double>& row : rows) {
      for (std::size_t i = 0; i < mean.size(); ++i) {
        mean[i] += row[i] / n;
      }
    }
    const std::int64_t mean_row = q_head * (dim + 1);
    for (std::int64_t i = 0; i < dim; ++i) {
      out.set(mean_row, i, mean[static_cast<std::size_t>(i)], mean_error);
      for (std::int64_t j = 0; j < dim; ++j) {
        double sum = 0;
        for (const std::vector<double>& row : rows) {
          sum += (row[static_cast<std::size_t>(i)] - mean[static_cast<std::size_t>(i)]) *
                 (row[static_cast<std::size_t>(j)] - mean[static_cast<std::size_t>(j)]);
        }
        const double difference = mean_error + row_error + 4 * kFloatRounding * most;
        const double products = n * difference * (4 * most + difference);
        out.set(mean_row + 1 + i, j, sum, products + rounding_growth(n + 8) * n * 4 * most * most);
      }
    }
  }
  return out;
}

namespace {

// The mean of the rotations ahead, as a matrix.
std::vector<std::vector<double>> mean_rotation(const HostTensor& inverse_freq,
                                               const Backend::PositionsAhead& ahead) {
  const auto half = static_cast<std::size_t>(inverse_freq.cols());
  std::vector<std::vector<double>> turn(2 * half, std::vector<double>(2 * half));
  for (std::int64_t step = 0; step < ahead.count; ++step) {
    for (std::size_t i = 0; i < half; ++i) {
      const double angle =
          angle_at(inverse_freq, index_of(ahead.first) + step, static_cast<std::int64_t>(i));
      const double cos = std::cos(angle) / as_double(ahead.count);
      const double sin = std::sin(angle) / as_double(ahead.count);
      turn[i][i] += cos;
      turn[i][half + i] -= sin;
      turn[half + i][half + i] += cos;
      turn[half + i][i] += sin;
    }
  }
  return turn;
}

}  // namespace

// Each element is two (of the mean) or four (of the covariance) terms: a few roundings of their
// magnitudes, and what the moments are off by.
Expected expect_queries(const Expected& moments, std::int64_t num_observed,
                        const HostTensor& inverse_freq, const Backend::PositionsAhead& ahead) {
  const std::int64_t dim = moments.cols;
  const auto turn = mean_rotation(inverse_freq, ahead);
  const double scale = 1.0 / std::sqrt(as_double(dim));
  const double product_scale =
      0.5 / as_double(dim) / as_double(std::max<std::int64_t>(num_observed, 1));
  const double relative = rounding_growth(16) + 4 * kTrigRounding;
  Expected out(moments.rows, dim);
  for (std::int64_t head = 0; head < moments.rows; head += dim + 1) {
    for (std::int64_t i = 0; i < dim; ++i) {
      const auto& of_row = turn[static_cast<std::size_t>(i)];
      double mean = 0;
      double error = 0;
      for (std::int64_t k = 0; k < dim; ++k) {
        const double factor = of_row[static_cast<std::size_t>(k)] * scale;
        const double value = moments.value[moments.index(head, k)];
        // A mean cosine near zero is a difference of large ones: its error is absolute.
        const bool pairs = k % (dim / 2) == i % (dim / 2);
        mean += factor * value;
        error += std::abs(factor) * moments.bound[moments.index(head, k)] +
                 (pairs ? relative * scale * std::abs(value) : 0.0);
      }
      out.set(head, i, mean, error + kFloatTiny);
      for (std::int64_t j = 0; j < dim; ++j) {
        double sum = 0;
        double sum_error = 0;
        for (const std::int64_t k : {i % (dim / 2), i % (dim / 2) + dim / 2}) {
          for (const std::int64_t l : {j % (dim / 2), j % (dim / 2) + dim / 2}) {
            const double factor = of_row[static_cast<std::size_t>(k)] *
                                  turn[static_cast<std::size_t>(j)][static_cast<std::size_t>(l)] *
                                  product_scale;
            const std::size_t at = moments.index(head + 1 + k, l);
            sum += factor * moments.value[at];
            sum_error += std::abs(factor) * moments.bound[at] +
                         2 * relative * product_scale * std::abs(moments.value[at]);
          }
        }
        out.set(head + 1 + i, j, sum, sum_error + kFloatTiny);
      }
    }
  }
  return out;
}

namespace {

// D products with the mean; D^2 with the covariance, in two sums; their sum.
Logits expected_logits(const Kv& kv, const Expected& queries, std::int64_t q_head,
                       std::int64_t kv_head, KeyRange range) {
  const std::int64_t dim = kv.head_dim();
  const std::int64_t mean_row = q_head * (dim + 1);
  Logits logits;
  for (std::int64_t key = range.begin; key < range.end; ++key) {
    const std::int64_t slot = kv.heads[static_cast<std::size_t>(kv_head)].offset + key;
    double value = 0;
    double error = 0;
    for (std::int64_t i = 0; i < dim; ++i) {
      const double k = kv.keys.at(slot, i);
      const std::size_t mean = queries.index(mean_row, i);
      value += queries.value[mean] * k;
      error += std::abs(k) * (queries.bound[mean] + rounding_growth(as_double(dim) + 4.0) *
                                                        std::abs(queries.value[mean]));
      for (std::int64_t j = 0; j < dim; ++j) {
        const std::size_t at = queries.index(mean_row + 1 + i, j);
        const double both = k * kv.keys.at(slot, j);
        value += queries.value[at] * both;
        error += std::abs(both) * (queries.bound[at] + rounding_growth(2 * as_double(dim) + 4.0) *
                                                           std::abs(queries.value[at]));
      }
    }
    logits.value.push_back(value);
    logits.bound.push_back(error + kFloatRounding * std::abs(value) + kFloatTiny);
  }
  logits.max = *std::max_element(logits.value.begin(), logits.value.end());
  logits.max_bound = *std::max_element(logits.bound.begin(), logits.bound.end());
  for (const double value : logits.value) {
    logits.normaliser += std::exp(value - logits.max);
  }
  return logits;
}

// Relative, of exp(logit - max): the difference's error, its own rounding, and at each tile of the
// walk that may raise the maximum an exponential and two roundings.
double weight_error(const Logits& logits, std::size_t key) {
  const double exponent =
      logits.bound[key] + kFloatRounding * (logits.max - logits.value[key] + 2 * logits.max_bound);
  const double walk = as_double(static_cast<std::int64_t>(logits.value.size()));
  return std::expm1(exponent + kExpRounding + walk * (kExpRounding + 2 * kFloatRounding));
}

double normaliser_error(const Logits& logits) {
  double error = 0;
  for (std::size_t key = 0; key < logits.value.size(); ++key) {
    error += std::exp(logits.value[key] - logits.max) * weight_error(logits, key) + kFloatTiny;
  }
  const double walk = as_double(static_cast<std::int64_t>(logits.value.size()));
  return error + logits.normaliser * (rounding_growth(2 * walk) + std::expm1(logits.max_bound));
}

}  // namespace

Expected expected_lse(const Kv& kv, const Expected& queries, KeyRange range) {
  const std::int64_t num_q_heads = queries.rows / (kv.head_dim() + 1);
  const std::int64_t group = num_q_heads / kv.num_kv_heads();
  Expected out(2 * num_q_heads, 1);
  for (std::int64_t q_head = 0; q_head < num_q_heads; ++q_head) {
    const Logits logits = expected_logits(kv, queries, q_head, q_head / group, range);
    out.set(q_head, 0, logits.max, logits.max_bound + kFloatTiny);
    out.set(num_q_heads + q_head, 0, logits.normaliser, normaliser_error(logits));
  }
  return out;
}

// A weight is off by its exponential's and its normaliser's errors; then a sum over the group, a
// quotient, the length of D squares and the product.
Expected score_expected(const Kv& kv, const Expected& queries, KeyRange all, KeyRange range) {
  const std::int64_t dim = kv.head_dim();
  const std::int64_t group = queries.rows / (dim + 1) / kv.num_kv_heads();
  Expected out(kv.num_kv_heads(), range.len());
  for (std::int64_t head = 0; head < kv.num_kv_heads(); ++head) {
    std::vector<double> sums(static_cast<std::size_t>(range.len()));
    std::vector<double> errors(sums.size());
    for (std::int64_t q_head = head * group; q_head < (head + 1) * group; ++q_head) {
      const Logits logits = expected_logits(kv, queries, q_head, head, all);
      const double of_normaliser = normaliser_error(logits) / logits.normaliser;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        const std::size_t key = i + static_cast<std::size_t>(range.begin - all.begin);
        const double weight = std::exp(logits.value[key] - logits.max) / logits.normaliser;
        sums[i] += weight;
        errors[i] +=
            weight * ((1 + weight_error(logits, key)) / std::max(1e-9, 1 - of_normaliser) - 1) +
            kFloatTiny;
      }
    }
    for (std::int64_t i = 0; i < range.len(); ++i) {
      const std::int64_t slot = kv.heads[static_cast<std::size_t>(head)].offset + range.begin + i;
      double square = 0;
      for (std::int64_t col = 0; col < dim; ++col) {
        square += kv.values.at(slot, col) * kv.values.at(slot, col);
      }
      const double factor = std::sqrt(square) / as_double(group);
      const double relative = rounding_growth(as_double(dim + group) + 6.0);
      const auto at = static_cast<std::size_t>(i);
      out.set(head, i, sums[at] * factor,
              (errors[at] * (1 + relative) + sums[at] * relative) * factor + kFloatTiny);
    }
  }
  return out;
}

}  // namespace tidekv::oracle
