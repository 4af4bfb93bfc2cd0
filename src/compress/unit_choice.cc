#include "compress/unit_choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/checked_math.h"

namespace tidekv {

Status download(Backend& backend, DeviceView from, std::span<std::byte> to) {
  backend.download(from, to);
  TIDEKV_TRY(backend.synchronize());
  if (backend.cancelled()) {
    return Error{ErrorCode::kCancelled, "cancelled during compression"};
  }
  return Ok{};
}

Result<UnitChoice> UnitChoice::open(Backend& backend, std::int64_t unit_len,
                                    const BlockScorer& scorer, std::span<const std::int64_t> lens) {
  UnitChoice choice;
  choice.backend_ = &backend;
  choice.unit_len_ = unit_len;
  choice.candidates_ = scorer.candidates();
  choice.num_kept_ = lens.front();
  // All that can stay whole, the one that is cut, and one more for a short last unit.
  const std::int64_t wanted = choice.num_kept_ / unit_len + 2;
  const std::int64_t units = std::min(wanted, ceil_div(choice.candidates_.len(), unit_len));
  choice.unit_lens_.assign(lens.size(), units);
  const auto num_heads = static_cast<std::int64_t>(lens.size());
  const auto allocate = [&](std::int64_t elements) {
    return backend.allocate({{Component::kCompressionTemp, elements * size_of(DType::kF32)}});
  };
  TIDEKV_ASSIGN(choice.averages_, allocate(num_heads * ceil_div(scorer.block_len(), unit_len)));
  TIDEKV_ASSIGN(choice.best_scores_, allocate(num_heads * units));
  TIDEKV_ASSIGN(choice.best_units_, allocate(num_heads * units));
  choice.state_.scores = choice.best_scores_.view(DType::kF32, 1, num_heads * units);
  choice.state_.ids = choice.best_units_.view(DType::kI32, 1, num_heads * units);
  return choice;
}

void UnitChoice::offer(const KeyRange& range, DeviceView scores) {
  const std::int64_t num_units = ceil_div(range.len(), unit_len_);
  const DeviceView averages = averages_.view(DType::kF32, scores.rows(), num_units);
  backend_->average_units(scores, unit_len_, averages);
  state_.lens = unit_lens_;
  backend_->topk_merge(averages, (range.begin - candidates_.begin) / unit_len_, state_);
  state_.num_offered += num_units;
}

KeyRange UnitChoice::range_of(std::int64_t unit) const {
  const std::int64_t begin = candidates_.begin + unit * unit_len_;
  return {begin, std::min(begin + unit_len_, candidates_.end)};
}

std::vector<std::int32_t> UnitChoice::ranked(std::size_t head, std::span<const float> scores,
                                             std::span<const std::int32_t> ids) const {
  const auto units = static_cast<std::size_t>(unit_lens_[head]);
  const std::size_t first = head * units;
  std::vector<std::size_t> order(units);
  std::iota(order.begin(), order.end(), first);
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return scores[a] > scores[b] || (scores[a] == scores[b] && ids[a] < ids[b]);
  });
  std::vector<std::int32_t> best;
  best.reserve(units);
  for (const std::size_t at : order) {
    best.push_back(ids[at]);
  }
  return best;
}

Result<std::vector<std::int32_t>> UnitChoice::best_of(BlockScorer& scorer, std::int64_t unit,
                                                      std::size_t head) const {
  const KeyRange range = range_of(unit);
  const DeviceView scores = scorer.score(range).rows_at(static_cast<std::int64_t>(head), 1);
  std::vector<float> values(static_cast<std::size_t>(range.len()));
  TIDEKV_TRY(download(*backend_, scores, std::as_writable_bytes(std::span(values))));
  std::vector<std::int32_t> slots(values.size());
  std::iota(slots.begin(), slots.end(), static_cast<std::int32_t>(range.begin));
  const auto score_of = [&](std::int32_t slot) {
    const float value = values[static_cast<std::size_t>(slot - range.begin)];
    return std::isnan(value) ? -std::numeric_limits<float>::infinity() : value;
  };
  std::stable_sort(slots.begin(), slots.end(),
                   [&](std::int32_t a, std::int32_t b) { return score_of(a) > score_of(b); });
  return slots;
}

Status UnitChoice::take(BlockScorer& scorer, DeviceView ids) {
  std::vector<float> scores(static_cast<std::size_t>(state_.scores.cols()));
  std::vector<std::int32_t> units(scores.size());
  TIDEKV_TRY(download(*backend_, state_.scores, std::as_writable_bytes(std::span(scores))));
  TIDEKV_TRY(download(*backend_, state_.ids, std::as_writable_bytes(std::span(units))));
  std::vector<std::int32_t> chosen;
  chosen.reserve(static_cast<std::size_t>(ids.cols()));
  for (std::size_t head = 0; head < unit_lens_.size(); ++head) {
    std::int64_t left = num_kept_;
    for (const std::int32_t unit : ranked(head, scores, units)) {
      if (left == 0) {
        break;
      }
      const KeyRange range = range_of(unit);
      if (range.len() > left) {
        TIDEKV_ASSIGN(const std::vector<std::int32_t> best, best_of(scorer, unit, head));
        chosen.insert(chosen.end(), best.begin(), best.begin() + left);
        break;
      }
      for (std::int64_t slot = range.begin; slot < range.end; ++slot) {
        chosen.push_back(static_cast<std::int32_t>(slot));
      }
      left -= range.len();
    }
  }
  backend_->upload(std::as_bytes(std::span(chosen)), ids);
  return Ok{};
}

}  // namespace tidekv
