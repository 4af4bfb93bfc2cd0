#include "oracle/choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tidekv::oracle {
namespace {

using Positions = std::vector<std::int32_t>;

float rank(float score) {
  return std::isnan(score) ? -std::numeric_limits<float>::infinity() : score;
}

// Candidates of one head, best first; of equals the lower position first.
Positions ranked(const std::vector<float>& scores, std::int32_t begin, std::int32_t end) {
  Positions positions(static_cast<std::size_t>(end - begin));
  std::iota(positions.begin(), positions.end(), begin);
  std::stable_sort(positions.begin(), positions.end(), [&](std::int32_t a, std::int32_t b) {
    return rank(scores[static_cast<std::size_t>(a)]) > rank(scores[static_cast<std::size_t>(b)]);
  });
  return positions;
}

// Ada-KV's budgets per head: how many of the heads * base best of all each has, mixed with an even
// share; what rounding down leaves, to the largest remainders.
std::vector<std::int64_t> adaptive_lens(const std::vector<std::vector<float>>& scores,
                                        std::int64_t base, std::int32_t begin, double even_share) {
  struct Entry {
    float score;
    std::size_t head;
    std::int32_t position;
  };
  std::vector<Entry> entries;
  for (std::size_t head = 0; head < scores.size(); ++head) {
    for (auto i = static_cast<std::size_t>(begin); i < scores[head].size(); ++i) {
      entries.push_back({rank(scores[head][i]), head, static_cast<std::int32_t>(i)});
    }
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.score > b.score; });
  const auto num_heads = static_cast<std::int64_t>(scores.size());
  const std::int64_t even = std::llround(even_share * 1e6);  // shares in millionths
  std::vector<std::int64_t> wanted(scores.size(), even * base);
  for (std::int64_t i = 0; i < num_heads * base; ++i) {
    wanted[entries[static_cast<std::size_t>(i)].head] += 1000000 - even;
  }
  std::vector<std::int64_t> lens;
  std::vector<std::pair<std::int64_t, std::size_t>> remainders;  // negative: largest first
  for (std::size_t head = 0; head < scores.size(); ++head) {
    lens.push_back(wanted[head] / 1000000);
    remainders.emplace_back(-(wanted[head] % 1000000), head);
  }
  std::sort(remainders.begin(), remainders.end());
  std::int64_t left = num_heads * base - std::accumulate(lens.begin(), lens.end(), std::int64_t{0});
  for (std::size_t i = 0; left > 0; ++i, --left) {
    lens[remainders[i].second] += 1;
  }
  return lens;
}

// Whole units by their mean, best first, until one does not fit; of that one the best candidates.
Positions best_units(const std::vector<float>& scores, std::int32_t begin, std::int64_t kept,
                     std::int64_t unit_len) {
  struct Unit {
    float mean;
    std::int32_t begin;
    std::int32_t end;
  };
  std::vector<Unit> units;
  const auto last = static_cast<std::int32_t>(scores.size());
  for (std::int32_t at = begin; at < last; at += static_cast<std::int32_t>(unit_len)) {
    const std::int32_t end = std::min(last, at + static_cast<std::int32_t>(unit_len));
    float sum = 0.0F;
    for (std::int32_t i = at; i < end; ++i) {
      sum += scores[static_cast<std::size_t>(i)];
    }
    units.push_back({rank(sum / static_cast<float>(end - at)), at, end});
  }
  std::stable_sort(units.begin(), units.end(),
                   [](const Unit& a, const Unit& b) { return a.mean > b.mean; });
  Positions chosen;
  for (const Unit& unit : units) {
    const Positions of_unit = ranked(scores, unit.begin, unit.end);
    const auto left = static_cast<std::size_t>(kept) - chosen.size();
    const std::size_t count = std::min(left, of_unit.size());
    chosen.insert(chosen.end(), of_unit.begin(),
                  of_unit.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return chosen;
}

}  // namespace

std::vector<Positions> choose_positions(const std::vector<std::vector<float>>& scores,
                                        const ScoreRecipe& recipe, std::int64_t layer_budget,
                                        std::int64_t prompt_len) {
  const std::int64_t base = layer_budget - recipe.num_mandatory();
  const auto begin = static_cast<std::int32_t>(recipe.num_sinks);
  std::vector<std::int64_t> lens(scores.size(), base);
  if (recipe.even_share < 1) {
    lens = adaptive_lens(scores, base, begin, recipe.even_share);
  }
  std::vector<Positions> kept;
  for (std::size_t head = 0; head < scores.size(); ++head) {
    Positions chosen =
        recipe.unit_len > 1
            ? best_units(scores[head], begin, lens[head], recipe.unit_len)
            : ranked(scores[head], begin, static_cast<std::int32_t>(scores[head].size()));
    chosen.resize(static_cast<std::size_t>(lens[head]));
    for (std::int32_t position = 0; position < begin; ++position) {
      chosen.push_back(position);
    }
    for (std::int64_t i = recipe.num_recent; i > 0; --i) {
      chosen.push_back(static_cast<std::int32_t>(prompt_len - i));
    }
    std::sort(chosen.begin(), chosen.end());
    kept.push_back(std::move(chosen));
  }
  return kept;
}

}  // namespace tidekv::oracle
