// From attention weights to retained positions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "backend/cpu/operations.h"
#include "base/checked_math.h"

namespace tidekv::cpu {
namespace {

constexpr std::int64_t kPieceKeys = 256;

// raw[i] = reduce over the group of (sum over the window of weights), for a piece of keys of one KV
// head. `weights` points at the first row of the head, rows `stride` floats apart.
void reduce_piece(const float* weights, std::int64_t stride, std::int64_t group,
                  std::int64_t window, GroupReduce reduce, std::int64_t num_keys, float* raw) {
  float sums[kPieceKeys];
  for (std::int64_t g = 0; g < group; ++g) {
    std::fill_n(sums, num_keys, 0.0F);
    for (std::int64_t w = 0; w < window; ++w) {
      const float* row = weights + (g * window + w) * stride;
      for (std::int64_t i = 0; i < num_keys; ++i) {
        sums[i] += row[i];
      }
    }
    for (std::int64_t i = 0; i < num_keys; ++i) {
      raw[i] = g == 0                         ? sums[i]
               : reduce == GroupReduce::kMean ? raw[i] + sums[i]
                                              : std::max(raw[i], sums[i]);
    }
  }
  if (reduce == GroupReduce::kMean) {
    for (std::int64_t i = 0; i < num_keys; ++i) {
      raw[i] /= static_cast<float>(group);
    }
  }
}

// The pool of keys [key - kernel_len / 2, key + kernel_len / 2] inside the prefix. An average
// divides by kernel_len at the edges too, as if zeros lay outside.
float pool_at(const float* raw, std::int64_t key, const PoolRecipe& recipe,
              const Backend::PoolRanges& ranges) {
  const std::int64_t halo = recipe.kernel_len / 2;
  const std::int64_t begin = std::max<std::int64_t>(0, key - halo);
  const std::int64_t end = std::min(ranges.prefix_len, key + halo + 1);
  float pooled = raw[begin - ranges.scored.begin];
  for (std::int64_t i = begin + 1; i < end; ++i) {
    const float value = raw[i - ranges.scored.begin];
    pooled = recipe.pool == Pool::kMax ? std::max(pooled, value) : pooled + value;
  }
  return recipe.pool == Pool::kMax ? pooled : pooled / static_cast<float>(recipe.kernel_len);
}

struct Candidate {
  float score = 0.0F;
  std::int32_t position = 0;

  // A strict total order: higher score first, then lower position.
  bool better_than(const Candidate& other) const {
    return score > other.score || (score == other.score && position < other.position);
  }
};

// The candidates of one head, a binary heap with the worst on top, in two arrays.
class Heap {
 public:
  Heap(float* scores, std::int32_t* positions, std::int64_t size, std::int64_t capacity)
      : scores_(scores), positions_(positions), size_(size), capacity_(capacity) {}

  void offer(const Candidate& candidate) {
    if (size_ < capacity_) {
      sift_up(size_++, candidate);
    } else if (capacity_ > 0 && candidate.better_than(at(0))) {
      sift_down(candidate);
    }
  }

 private:
  Candidate at(std::int64_t i) const { return {scores_[i], positions_[i]}; }
  void set(std::int64_t i, const Candidate& candidate) {
    scores_[i] = candidate.score;
    positions_[i] = candidate.position;
  }

  void sift_up(std::int64_t i, const Candidate& candidate) {
    while (i > 0 && at((i - 1) / 2).better_than(candidate)) {
      set(i, at((i - 1) / 2));
      i = (i - 1) / 2;
    }
    set(i, candidate);
  }

  // Replaces the worst.
  void sift_down(const Candidate& candidate) {
    std::int64_t i = 0;
    for (std::int64_t child = 1; child < size_; child = 2 * i + 1) {
      if (child + 1 < size_ && at(child).better_than(at(child + 1))) {
        ++child;
      }
      if (!candidate.better_than(at(child))) {
        break;
      }
      set(i, at(child));
      i = child;
    }
    set(i, candidate);
  }

  float* scores_;
  std::int32_t* positions_;
  std::int64_t size_;
  std::int64_t capacity_;
};

// Where a list begins; they stand one behind the other.
std::int64_t begin_of(std::span<const std::int64_t> lens, std::int64_t list) {
  return std::accumulate(lens.begin(), lens.begin() + list, std::int64_t{0});
}

// rows[h][i] = mean over all rows h of rows[h][i], for a piece of columns.
void average_rows(DeviceView rows, std::int64_t first, std::int64_t count) {
  for (std::int64_t i = first; i < first + count; ++i) {
    float sum = 0.0F;
    for (std::int64_t h = 0; h < rows.rows(); ++h) {
      sum += floats(rows, h)[i];
    }
    for (std::int64_t h = 0; h < rows.rows(); ++h) {
      floats(rows, h)[i] = sum / static_cast<float>(rows.rows());
    }
  }
}

}  // namespace

void pool_scores(const Context& context, DeviceView weights, const PoolRecipe& recipe,
                 const Backend::PoolRanges& ranges, DeviceView raw, DeviceView scores) {
  const std::int64_t num_kv_heads = raw.rows();
  const std::int64_t head_rows = weights.rows() / num_kv_heads;
  const std::int64_t group = head_rows / ranges.window_len;
  const std::int64_t scored_pieces = ceil_div(ranges.scored.len(), kPieceKeys);
  context.pool.parallel_for(scored_pieces * num_kv_heads, [&](std::int64_t task, int) {
    const std::int64_t head = task / scored_pieces;
    const std::int64_t first = task % scored_pieces * kPieceKeys;
    reduce_piece(floats(weights, head * head_rows) + first, weights.cols(), group,
                 ranges.window_len, recipe.group_reduce,
                 std::min(kPieceKeys, ranges.scored.len() - first), floats(raw, head) + first);
  });
  if (recipe.heads == HeadScores::kMean) {
    context.pool.parallel_for(scored_pieces, [&](std::int64_t task, int) {
      const std::int64_t first = task * kPieceKeys;
      average_rows(raw, first, std::min(kPieceKeys, ranges.scored.len() - first));
    });
  }
  const std::int64_t wanted_pieces = ceil_div(ranges.wanted.len(), kPieceKeys);
  context.pool.parallel_for(wanted_pieces * num_kv_heads, [&](std::int64_t task, int) {
    const std::int64_t head = task / wanted_pieces;
    const std::int64_t first = task % wanted_pieces * kPieceKeys;
    const std::int64_t end = std::min(first + kPieceKeys, ranges.wanted.len());
    for (std::int64_t i = first; i < end; ++i) {
      floats(scores, head)[i] = pool_at(floats(raw, head), ranges.wanted.begin + i, recipe, ranges);
    }
  });
}

void average_units(const Context& context, DeviceView scores, std::int64_t unit_len,
                   DeviceView averages) {
  context.pool.parallel_for(scores.rows(), [&](std::int64_t row, int) {
    for (std::int64_t unit = 0; unit < averages.cols(); ++unit) {
      const std::int64_t begin = unit * unit_len;
      const std::int64_t end = std::min(begin + unit_len, scores.cols());
      float sum = 0.0F;
      for (std::int64_t i = begin; i < end; ++i) {
        sum += floats(scores, row)[i];
      }
      floats(averages, row)[unit] = sum / static_cast<float>(end - begin);
    }
  });
}

void topk_merge(const Context& context, DeviceView scores, std::int64_t first,
                const TopKState& state) {
  context.pool.parallel_for(scores.rows(), [&](std::int64_t row, int) {
    const auto list = static_cast<std::size_t>(row);
    const std::int64_t capacity = state.lens[list];
    const std::int64_t begin = begin_of(state.lens, row);
    Heap heap(floats(state.scores) + begin, integers(state.ids) + begin,
              std::min(state.num_offered, capacity), capacity);
    const float* offered = floats(scores, row);
    for (std::int64_t i = 0; i < scores.cols(); ++i) {
      const float score =
          std::isnan(offered[i]) ? -std::numeric_limits<float>::infinity() : offered[i];
      heap.offer({score, static_cast<std::int32_t>(first + i)});
    }
  });
}

void count_ids(const Context& context, DeviceView ids, std::int64_t stride, DeviceView counts) {
  context.pool.parallel_for(1, [&](std::int64_t, int) {
    std::fill_n(integers(counts), counts.cols(), 0);
    for (std::int64_t i = 0; i < ids.cols(); ++i) {
      integers(counts)[integers(ids)[i] / stride] += 1;
    }
  });
}

void topk_take(const Context& context, const TopKState& state, const Backend::Mandatory& mandatory,
               DeviceView retained) {
  const auto num_heads = static_cast<std::int64_t>(state.lens.size());
  context.pool.parallel_for(num_heads, [&](std::int64_t head, int) {
    const std::int64_t from = begin_of(state.lens, head);
    std::int32_t* const begin = integers(retained) + from + head * mandatory.count();
    std::int32_t* to = begin;
    for (std::int64_t i = 0; i < mandatory.num_sinks; ++i) {
      *to++ = static_cast<std::int32_t>(i);
    }
    to = std::copy_n(integers(state.ids) + from, state.lens[static_cast<std::size_t>(head)], to);
    for (std::int64_t i = mandatory.prompt_len - mandatory.num_recent; i < mandatory.prompt_len;
         ++i) {
      *to++ = static_cast<std::int32_t>(i);
    }
    std::sort(begin, to);
  });
}

}  // namespace tidekv::cpu
