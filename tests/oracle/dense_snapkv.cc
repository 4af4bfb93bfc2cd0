#include "oracle/dense_snapkv.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "oracle/expected_attention.h"
#include "oracle/rounding.h"

namespace tidekv::oracle {
namespace {

constexpr std::int64_t kPositionsAhead = 512;

// A score of every prefix key and its error bound.
struct Scores {
  explicit Scores(std::int64_t len) : value(static_cast<std::size_t>(len)), bound(value.size()) {}

  std::vector<double> value;
  std::vector<double> bound;
};

// Adds the softmax weights of one window row over the prefix; the window's own keys stay in the
// denominator. Numerator and denominator each take the largest error of a logit and the roundings
// of differences to the maximum: those of the key itself, and on average over the denominator at
// most log(len), its terms' entropy. Then come the exponentials, those by which a growing maximum
// rescales the normaliser, and the sum over all keys.
void add_row_weights(const Logits& logits, Scores& sums) {
  const auto len = static_cast<double>(logits.value.size());
  for (std::size_t key = 0; key < sums.value.size(); ++key) {
    const double below = logits.max - logits.value[key] + 2 * logits.max_bound;
    const double exponent = 2 * logits.max_bound + kFloatRounding * (below + std::log(len)) +
                            (2.0 + logits.growths) * (kExpRounding + 2 * kFloatRounding);
    const double weight = std::exp(logits.value[key] - logits.max) / logits.normaliser;
    sums.value[key] += weight;
    sums.bound[key] += weight * (std::expm1(exponent) + rounding_growth(len + 4)) + kFloatTiny;
  }
}

// Sum over the window, then mean or maximum over the query heads of one KV head.
Scores group_scores(const HostTensor& queries, const Kv& kv, std::int64_t head,
                    const DenseSnapKvOptions& options) {
  const GroupReduce reduce = options.pool.group_reduce;
  const std::int64_t window_len = queries.rows();
  const std::int64_t prefix_len = kv.heads[static_cast<std::size_t>(head)].len - options.num_recent;
  const std::int64_t group = queries.cols() / kv.head_dim() / kv.num_kv_heads();
  Scores reduced(prefix_len);
  for (std::int64_t g = 0; g < group; ++g) {
    Scores sums(prefix_len);
    for (std::int64_t row = 0; row < window_len; ++row) {
      add_row_weights(logits_of(queries, kv, row, head * group + g), sums);
    }
    for (std::size_t key = 0; key < sums.value.size(); ++key) {
      if (reduce == GroupReduce::kMean) {
        reduced.value[key] += sums.value[key] / static_cast<double>(group);
        reduced.bound[key] += sums.bound[key] / static_cast<double>(group);
      } else {
        reduced.value[key] = std::max(reduced.value[key], sums.value[key]);
        reduced.bound[key] = std::max(reduced.bound[key], sums.bound[key]);
      }
    }
  }
  const double sums_growth = rounding_growth(static_cast<double>(window_len + group) + 2.0);
  for (std::size_t key = 0; key < reduced.value.size(); ++key) {
    reduced.bound[key] += sums_growth * reduced.value[key];
  }
  return reduced;
}

// Mean over all KV heads.
Scores mean_scores(const HostTensor& queries, const Kv& kv, const DenseSnapKvOptions& options) {
  const auto heads = static_cast<double>(kv.num_kv_heads());
  Scores mean = group_scores(queries, kv, 0, options);
  for (std::int64_t head = 1; head < kv.num_kv_heads(); ++head) {
    const Scores other = group_scores(queries, kv, head, options);
    for (std::size_t key = 0; key < mean.value.size(); ++key) {
      mean.value[key] += other.value[key];
      mean.bound[key] += other.bound[key];
    }
  }
  for (std::size_t key = 0; key < mean.value.size(); ++key) {
    mean.value[key] /= heads;
    mean.bound[key] = mean.bound[key] / heads + rounding_growth(heads + 2.0) * mean.value[key];
  }
  return mean;
}

// Pools over neighbouring keys of the prefix. A maximum moves by no more than the largest error
// below it; an average always divides by the kernel's length, as if zeros lay outside.
Scores pool(const Scores& scores, const PoolRecipe& recipe) {
  const auto len = static_cast<std::int64_t>(scores.value.size());
  const std::int64_t halo = recipe.kernel_len / 2;
  Scores pooled(len);
  for (std::int64_t key = 0; key < len; ++key) {
    double value = 0;
    double bound = 0;
    for (std::int64_t near = std::max<std::int64_t>(0, key - halo);
         near <= std::min(len - 1, key + halo); ++near) {
      const auto at = static_cast<std::size_t>(near);
      if (recipe.pool == Pool::kMax) {
        value = std::max(value, scores.value[at]);
        bound = std::max(bound, scores.bound[at]);
      } else {
        const auto kernel_len = static_cast<double>(recipe.kernel_len);
        value += scores.value[at] / kernel_len;
        bound +=
            (scores.bound[at] + rounding_growth(kernel_len + 1.0) * scores.value[at]) / kernel_len;
      }
    }
    pooled.value[static_cast<std::size_t>(key)] = value;
    pooled.bound[static_cast<std::size_t>(key)] = bound;
  }
  return pooled;
}

// Sinks, the best of the rest of the prefix (ties: lower position), and the window; ascending.
std::vector<std::int32_t> choose(const std::vector<double>& scores, std::int64_t prompt_len,
                                 const DenseSnapKvOptions& options) {
  std::vector<std::int32_t> positions(static_cast<std::size_t>(prompt_len));
  std::iota(positions.begin(), positions.end(), 0);
  if (options.budget >= prompt_len) {
    return positions;
  }
  const auto rank = [&](std::int32_t position) {
    const bool mandatory =
        position < options.num_sinks || position >= static_cast<std::int32_t>(scores.size());
    return mandatory ? std::numeric_limits<double>::infinity()
                     : scores[static_cast<std::size_t>(position)];
  };
  std::stable_sort(positions.begin(), positions.end(),
                   [&](std::int32_t a, std::int32_t b) { return rank(a) > rank(b); });
  positions.resize(static_cast<std::size_t>(options.budget));
  std::sort(positions.begin(), positions.end());
  return positions;
}

}  // namespace

DenseSelection dense_snapkv(const HostTensor& window_queries, const Kv& kv,
                            const DenseSnapKvOptions& options) {
  DenseSelection selection;
  for (std::int64_t head = 0; head < kv.num_kv_heads(); ++head) {
    const Scores raw = options.pool.heads == HeadScores::kMean
                           ? mean_scores(window_queries, kv, options)
                           : group_scores(window_queries, kv, head, options);
    Scores pooled = pool(raw, options.pool);
    const std::int64_t prompt_len = kv.heads[static_cast<std::size_t>(head)].len;
    selection.positions.push_back(choose(pooled.value, prompt_len, options));
    selection.scores.push_back(std::move(pooled.value));
    selection.score_bounds.push_back(std::move(pooled.bound));
  }
  return selection;
}

namespace {

// Of what every key of the prefix scores, [kv_heads, prefix_len].
DenseSelection selection_of(const Expected& expected, const Kv& kv,
                            const DenseSnapKvOptions& options) {
  DenseSelection selection;
  const std::int64_t prompt_len = kv.heads.front().len;
  for (std::int64_t head = 0; head < kv.num_kv_heads(); ++head) {
    Scores scores(expected.cols);
    for (std::int64_t key = 0; key < expected.cols; ++key) {
      scores.value[static_cast<std::size_t>(key)] = expected.value[expected.index(head, key)];
      scores.bound[static_cast<std::size_t>(key)] = expected.bound[expected.index(head, key)];
    }
    selection.positions.push_back(choose(scores.value, prompt_len, options));
    selection.scores.push_back(std::move(scores.value));
    selection.score_bounds.push_back(std::move(scores.bound));
  }
  return selection;
}

}  // namespace

DenseSelection dense_knorm(const Kv& kv, const DenseSnapKvOptions& options) {
  const std::int64_t prefix_len = kv.heads.front().len - options.num_recent;
  return selection_of(score_key_norms(kv, {0, prefix_len}), kv, options);
}

DenseSelection dense_key_difference(const Kv& kv, const DenseSnapKvOptions& options) {
  const std::int64_t prefix_len = kv.heads.front().len - options.num_recent;
  return selection_of(score_directions(kv, mean_directions(kv), {0, prefix_len}), kv, options);
}

DenseSelection dense_expected_attention(const HostTensor& q, const HostTensor& inverse_freq,
                                        Position first, const Kv& kv,
                                        const DenseSnapKvOptions& options) {
  const std::int64_t prefix_len = kv.heads.front().len - options.num_recent;
  const Position ahead{static_cast<std::int32_t>(index_of(first) + q.rows())};
  const Expected queries = expect_queries(query_moments(q, inverse_freq, first), q.rows(),
                                          inverse_freq, {ahead, kPositionsAhead});
  // Sinks are no candidates, and have no part in the sum.
  const Expected candidates =
      score_expected(kv, queries, {options.num_sinks, prefix_len}, {options.num_sinks, prefix_len});
  Expected scores(candidates.rows, prefix_len);
  for (std::int64_t head = 0; head < candidates.rows; ++head) {
    for (std::int64_t key = 0; key < candidates.cols; ++key) {
      const std::size_t from = candidates.index(head, key);
      scores.set(head, options.num_sinks + key, candidates.value[from], candidates.bound[from]);
    }
  }
  return selection_of(scores, kv, options);
}

bool explained_by_rounding(const DenseSelection& wanted, std::size_t head,
                           std::span<const std::int32_t> retained) {
  const std::vector<std::int32_t>& chosen = wanted.positions[head];
  if (chosen.size() != retained.size()) {
    return false;
  }
  std::vector<std::int32_t> missing;
  std::vector<std::int32_t> extra;
  std::set_difference(chosen.begin(), chosen.end(), retained.begin(), retained.end(),
                      std::back_inserter(missing));
  std::set_difference(retained.begin(), retained.end(), chosen.begin(), chosen.end(),
                      std::back_inserter(extra));
  const auto is_prefix = [&](std::int32_t position) {
    return position >= 0 && position < static_cast<std::int32_t>(wanted.scores[head].size());
  };
  if (!std::all_of(missing.begin(), missing.end(), is_prefix) ||
      !std::all_of(extra.begin(), extra.end(), is_prefix)) {
    return false;  // a mandatory token was dropped, or no token at all was kept
  }
  double surely_reached =
      -std::numeric_limits<double>::infinity();  // by every token that is missing
  for (const std::int32_t position : missing) {
    const auto at = static_cast<std::size_t>(position);
    surely_reached =
        std::max(surely_reached, wanted.scores[head][at] - wanted.score_bounds[head][at]);
  }
  return std::all_of(extra.begin(), extra.end(), [&](std::int32_t position) {
    const auto at = static_cast<std::size_t>(position);
    return wanted.scores[head][at] + wanted.score_bounds[head][at] >= surely_reached;
  });
}

}  // namespace tidekv::oracle
