#include "oracle/attention_ops.h"

#include <algorithm>
#include <cmath>

#include "oracle/rounding.h"

namespace tidekv::oracle {
namespace {

std::int64_t group_size(const HostTensor& q, const Kv& kv) {
  return q.cols() / (kv.num_kv_heads() * kv.head_dim());
}

double as_double(std::int64_t n) { return static_cast<double>(n); }

// Row r of the newest `rows` sees this many slots.
std::int64_t visible_len(const HeadSpan& head, std::int64_t rows, std::int64_t row) {
  return head.len - rows + row + 1;
}

// Largest relative error of an unnormalised weight exp(logit - max) in a walk over key tiles that
// keeps a running maximum. The exponent is off by the logit's bound and by the roundings of the
// differences to the maxima met on the way, which add up to at most max - logit; each time the
// maximum grows the weight is multiplied by one more exponential. A common error of the maximum
// itself cancels in the quotient.
double weight_error(const Logits& logits, std::size_t key) {
  const double exponent =
      logits.bound[key] + kFloatRounding * (logits.max - logits.value[key] + 2 * logits.max_bound);
  return std::expm1(exponent + kExpRounding + logits.growths * (kExpRounding + 2 * kFloatRounding));
}

// An implementation that meets a key within rounding of the maximum may count it as a new one.
void count_growths(Logits& logits) {
  double running = logits.value[0];
  for (std::size_t key = 1; key < logits.value.size(); ++key) {
    logits.growths += logits.value[key] + 2 * logits.max_bound >= running ? 1 : 0;
    running = std::max(running, logits.value[key]);
  }
}

}  // namespace

// head_dim products and their sum, the scale's own rounding and the product with it:
// head_dim + 3 roundings of the sum of magnitudes.
Logits logits_of(const HostTensor& q, const Kv& kv, std::int64_t row, std::int64_t q_head) {
  const std::int64_t dim = kv.head_dim();
  const HeadSpan& head = kv.heads[static_cast<std::size_t>(q_head / group_size(q, kv))];
  const double scale = 1.0 / std::sqrt(as_double(dim));
  Logits logits;
  for (std::int64_t key = 0; key < visible_len(head, q.rows(), row); ++key) {
    double dot = 0;
    double magnitude = 0;
    for (std::int64_t i = 0; i < dim; ++i) {
      const double product = q.at(row, q_head * dim + i) * kv.keys.at(head.offset + key, i);
      dot += product;
      magnitude += std::abs(product);
    }
    logits.value.push_back(dot * scale);
    logits.bound.push_back(rounding_growth(as_double(dim) + 3.0) * magnitude * scale);
  }
  logits.max = *std::max_element(logits.value.begin(), logits.value.end());
  logits.max_bound = *std::max_element(logits.bound.begin(), logits.bound.end());
  for (const double value : logits.value) {
    logits.normaliser += std::exp(value - logits.max);
  }
  count_growths(logits);
  return logits;
}

// With w the exact weights and e their relative errors, sum(w v (1 + e)) / sum(w (1 + e)) is off by
// at most (sum(w |v| e) + |out| sum(w e)) / (1 - sum(w e)). Both sums over keys add one rounding a
// key, the quotient two, a flushed weight at most kFloatTiny |v|; the store rounds once.
Expected attend(const HostTensor& q, const Kv& kv) {
  const std::int64_t dim = kv.head_dim();
  Expected out(q.rows(), q.cols());
  for (std::int64_t q_head = 0; q_head < q.cols() / dim; ++q_head) {
    const HeadSpan& head = kv.heads[static_cast<std::size_t>(q_head / group_size(q, kv))];
    for (std::int64_t row = 0; row < q.rows(); ++row) {
      const Logits logits = logits_of(q, kv, row, q_head);
      const std::size_t len = logits.value.size();
      const double sums = rounding_growth(static_cast<double>(len) + logits.growths + 2.0);
      std::vector<double> weights(len);
      std::vector<double> errors(len);
      double mean_error = 0;
      for (std::size_t key = 0; key < len; ++key) {
        weights[key] = std::exp(logits.value[key] - logits.max) / logits.normaliser;
        errors[key] = weight_error(logits, key) + sums;
        mean_error += weights[key] * errors[key];
      }
      for (std::int64_t i = 0; i < dim; ++i) {
        double exact = 0;
        double error = 0;
        for (std::size_t key = 0; key < len; ++key) {
          const double value = kv.values.at(head.offset + static_cast<std::int64_t>(key), i);
          exact += weights[key] * value;
          error += std::abs(value) * (weights[key] * errors[key] + kFloatTiny);
        }
        error = (error + std::abs(exact) * mean_error) / (1.0 - mean_error);
        error += storage_rounding(q.dtype()) * (std::abs(exact) + error) + kFloatTiny;
        out.set(row, q_head * dim + i, exact, error);
      }
    }
  }
  return out;
}

// The maximum of perturbed logits moves by no more than the largest perturbation; the normaliser
// refers to that maximum, so it takes the shift's error too, and one rounding for every key.
Expected window_lse(const HostTensor& q, const Kv& kv) {
  const std::int64_t num_q_heads = q.cols() / kv.head_dim();
  Expected out(2 * num_q_heads, q.rows());
  for (std::int64_t q_head = 0; q_head < num_q_heads; ++q_head) {
    for (std::int64_t row = 0; row < q.rows(); ++row) {
      const Logits logits = logits_of(q, kv, row, q_head);
      const auto len = static_cast<double>(logits.value.size());
      double error = 0;
      for (std::size_t key = 0; key < logits.value.size(); ++key) {
        error += std::exp(logits.value[key] - logits.max) * weight_error(logits, key) + kFloatTiny;
      }
      error += logits.normaliser *
               (rounding_growth(len + logits.growths) + std::expm1(logits.max_bound));
      out.set(q_head, row, logits.max, logits.max_bound + kFloatTiny);
      out.set(num_q_heads + q_head, row, logits.normaliser, error);
    }
  }
  return out;
}

// The exponent is off by the logit's bound and the rounding of the difference; the exponential and
// the quotient (or the product with a reciprocal) follow.
Expected score_keys(const HostTensor& q, const Kv& kv, const HostTensor& lse, KeyRange range) {
  const std::int64_t num_q_heads = q.cols() / kv.head_dim();
  Expected out(num_q_heads * q.rows(), range.len());
  for (std::int64_t q_head = 0; q_head < num_q_heads; ++q_head) {
    for (std::int64_t row = 0; row < q.rows(); ++row) {
      const Logits logits = logits_of(q, kv, row, q_head);
      const double max = lse.at(q_head, row);
      const double normaliser = lse.at(num_q_heads + q_head, row);
      for (std::int64_t key = range.begin; key < range.end; ++key) {
        const std::int64_t out_row = q_head * q.rows() + row;
        if (key >= static_cast<std::int64_t>(logits.value.size())) {
          out.set(out_row, key - range.begin, 0.0, 0.0);
          continue;
        }
        const double logit = logits.value[static_cast<std::size_t>(key)];
        const double bound = logits.bound[static_cast<std::size_t>(key)];
        const double weight = std::exp(logit - max) / normaliser;
        const double exponent = bound + kFloatRounding * (std::abs(logit - max) + bound);
        const double error = std::expm1(exponent + kExpRounding + rounding_growth(2));
        out.set(out_row, key - range.begin, weight, weight * error + kFloatTiny);
      }
    }
  }
  return out;
}

// A sum of D squares, which are not negative, and a root, which halves its relative error.
Expected score_key_norms(const Kv& kv, KeyRange range) {
  Expected out(kv.num_kv_heads(), range.len());
  for (std::int64_t head = 0; head < kv.num_kv_heads(); ++head) {
    for (std::int64_t key = range.begin; key < range.end; ++key) {
      const std::int64_t slot = kv.heads[static_cast<std::size_t>(head)].offset + key;
      double sum = 0;
      for (std::int64_t col = 0; col < kv.head_dim(); ++col) {
        sum += kv.keys.at(slot, col) * kv.keys.at(slot, col);
      }
      const double error = rounding_growth(as_double(kv.head_dim()) + 2.0) * std::sqrt(sum);
      out.set(head, key - range.begin, -std::sqrt(sum), error + std::sqrt(kFloatTiny));
    }
  }
  return out;
}

namespace {

double length_of(const HostTensor& keys, std::int64_t slot) {
  double sum = 0;
  for (std::int64_t col = 0; col < keys.cols(); ++col) {
    sum += keys.at(slot, col) * keys.at(slot, col);
  }
  return std::sqrt(sum);
}

// Shorter ones count as so long.
constexpr double kLeastDivisor = 1e-12;
constexpr double kLeastLength = 1e-8;

}  // namespace

// A length is off by half of what its D squares and their sum are, then a root, a quotient, a
// product; the sum over keys adds one rounding a key, and the mean a quotient.
Expected mean_directions(const Kv& kv) {
  Expected out(kv.num_kv_heads(), kv.head_dim());
  for (std::int64_t head = 0; head < kv.num_kv_heads(); ++head) {
    const HeadSpan& span = kv.heads[static_cast<std::size_t>(head)];
    std::vector<double> sums(static_cast<std::size_t>(kv.head_dim()));
    std::vector<double> magnitudes(sums.size());
    for (std::int64_t slot = span.offset; slot < span.offset + span.len; ++slot) {
      const double length = std::max(length_of(kv.keys, slot), kLeastDivisor);
      for (std::size_t col = 0; col < sums.size(); ++col) {
        const double part = kv.keys.at(slot, static_cast<std::int64_t>(col)) / length;
        sums[col] += part;
        magnitudes[col] += std::abs(part);
      }
    }
    const double roundings = as_double(kv.head_dim()) / 2 + as_double(span.len) + 6.0;
    for (std::size_t col = 0; col < sums.size(); ++col) {
      out.set(head, static_cast<std::int64_t>(col), sums[col] / as_double(span.len),
              rounding_growth(roundings) * magnitudes[col] / as_double(span.len) + kFloatTiny);
    }
  }
  return out;
}

// The product of D terms is off by D roundings of their magnitudes and by what the anchor is off
// by; both lengths are relatively off by half of D squares and their sum, the anchor's by its own
// error.
Expected score_directions(const Kv& kv, const Expected& anchors, KeyRange range) {
  const auto dim = as_double(kv.head_dim());
  Expected out(kv.num_kv_heads(), range.len());
  for (std::int64_t head = 0; head < kv.num_kv_heads(); ++head) {
    double square = 0;
    double square_error = 0;
    for (std::int64_t col = 0; col < kv.head_dim(); ++col) {
      const std::size_t at = anchors.index(head, col);
      square += anchors.value[at] * anchors.value[at];
      square_error += anchors.bound[at] * anchors.bound[at];
    }
    const double anchor_length = std::max(std::sqrt(square), kLeastLength);
    const double anchor_error = std::sqrt(square_error) / anchor_length;
    for (std::int64_t key = range.begin; key < range.end; ++key) {
      const std::int64_t slot = kv.heads[static_cast<std::size_t>(head)].offset + key;
      const double lengths = std::max(length_of(kv.keys, slot), kLeastLength) * anchor_length;
      double product = 0;
      double error = 0;
      for (std::int64_t col = 0; col < kv.head_dim(); ++col) {
        const std::size_t at = anchors.index(head, col);
        const double term = kv.keys.at(slot, col) * anchors.value[at];
        product += term;
        error += rounding_growth(dim) * std::abs(term) +
                 std::abs(kv.keys.at(slot, col)) * anchors.bound[at];
      }
      const double relative = rounding_growth(dim + 8.0) + 2 * anchor_error;
      out.set(
          head, key - range.begin, -product / lengths,
          error / lengths * (1 + relative) + std::abs(product / lengths) * relative + kFloatTiny);
    }
  }
  return out;
}

namespace {

// Sum over the window, then mean or maximum over `group` query heads, whose rows begin at `first`.
double grouped(const HostTensor& weights, GroupReduce reduce, std::int64_t first,
               std::int64_t group, std::int64_t window_len, std::int64_t col) {
  double reduced = 0;
  for (std::int64_t g = 0; g < group; ++g) {
    double sum = 0;
    for (std::int64_t w = 0; w < window_len; ++w) {
      sum += weights.at(first + g * window_len + w, col);
    }
    reduced = reduce == GroupReduce::kMean ? reduced + sum : std::max(reduced, sum);
  }
  return reduce == GroupReduce::kMean ? reduced / as_double(group) : reduced;
}

// One column before pooling: of KV head `head` alone, or the mean of all.
double raw_score(const HostTensor& weights, std::int64_t num_kv_heads, std::int64_t head,
                 const PoolRecipe& recipe, std::int64_t window_len, std::int64_t col) {
  const std::int64_t group = weights.rows() / num_kv_heads / window_len;
  const auto score_of = [&](std::int64_t h) {
    return grouped(weights, recipe.group_reduce, h * group * window_len, group, window_len, col);
  };
  if (recipe.heads == HeadScores::kOwn) {
    return score_of(head);
  }
  double sum = 0;
  for (std::int64_t h = 0; h < num_kv_heads; ++h) {
    sum += score_of(h);
  }
  return sum / as_double(num_kv_heads);
}

}  // namespace

// Nothing is negative, so every sum's error is relative: W for the window, the group's size and a
// division, the same for the KV heads, the kernel's length and a division. Maxima round nothing.
Expected pool_scores(const HostTensor& weights, std::int64_t num_kv_heads, const PoolRecipe& recipe,
                     const Backend::PoolRanges& ranges) {
  const std::int64_t halo = recipe.kernel_len / 2;
  const std::int64_t group = weights.rows() / num_kv_heads / ranges.window_len;
  const std::int64_t heads = recipe.heads == HeadScores::kMean ? num_kv_heads + 1 : 0;
  const double roundings = as_double(ranges.window_len + group + heads + recipe.kernel_len) + 2.0;
  Expected out(num_kv_heads, ranges.wanted.len());
  for (std::int64_t head = 0; head < num_kv_heads; ++head) {
    for (std::int64_t key = ranges.wanted.begin; key < ranges.wanted.end; ++key) {
      double pooled = 0;
      const std::int64_t last = std::min(ranges.prefix_len - 1, key + halo);
      for (std::int64_t near = std::max<std::int64_t>(0, key - halo); near <= last; ++near) {
        const double score = raw_score(weights, num_kv_heads, head, recipe, ranges.window_len,
                                       near - ranges.scored.begin);
        pooled = recipe.pool == Pool::kMax ? std::max(pooled, score) : pooled + score;
      }
      if (recipe.pool == Pool::kAverage) {  // keys beyond the prefix count as zeros
        pooled /= as_double(recipe.kernel_len);
      }
      out.set(head, key - ranges.wanted.begin, pooled,
              rounding_growth(roundings) * pooled + roundings * kFloatTiny);
    }
  }
  return out;
}

}  // namespace tidekv::oracle
