#include "text/merge_table.h"

#include <algorithm>
#include <functional>

namespace tidekv {

// Counting sort by left symbol, then by right symbol inside each.
MergeTable::MergeTable(const std::vector<Merge>& merges, std::int64_t num_symbols) {
  pair_begin_.assign(static_cast<std::size_t>(num_symbols) + 1, 0);
  for (const Merge& merge : merges) {
    ++pair_begin_[static_cast<std::size_t>(merge.left) + 1];
  }
  for (std::size_t i = 1; i < pair_begin_.size(); ++i) {
    pair_begin_[i] += pair_begin_[i - 1];
  }
  pairs_.resize(merges.size());
  std::vector<std::uint32_t> next = pair_begin_;
  for (const Merge& merge : merges) {
    pairs_[next[static_cast<std::size_t>(merge.left)]++] = {merge.right, merge.result, merge.order};
  }
  for (std::size_t left = 0; left + 1 < pair_begin_.size(); ++left) {
    std::sort(pairs_.begin() + pair_begin_[left], pairs_.begin() + pair_begin_[left + 1],
              [](const Pair& a, const Pair& b) {
                return a.right != b.right ? a.right < b.right : a.order < b.order;
              });
  }
}

std::optional<MergeTable::Repeated> MergeTable::repeated() const {
  for (std::size_t left = 0; left + 1 < pair_begin_.size(); ++left) {
    const auto end = pairs_.begin() + pair_begin_[left + 1];
    const auto twice =
        std::adjacent_find(pairs_.begin() + pair_begin_[left], end,
                           [](const Pair& a, const Pair& b) { return a.right == b.right; });
    if (twice != end) {
      return Repeated{twice->order, (twice + 1)->order};
    }
  }
  return std::nullopt;
}

std::int32_t MergeTable::find(std::int32_t left, std::int32_t right) const {
  if (left < 0 || right < 0) {
    return -1;
  }
  const auto left_id = static_cast<std::size_t>(left);
  const auto end = pairs_.begin() + pair_begin_[left_id + 1];
  const auto found =
      std::lower_bound(pairs_.begin() + pair_begin_[left_id], end, right,
                       [](const Pair& pair, std::int32_t id) { return pair.right < id; });
  return found == end || found->right != right ? -1
                                               : static_cast<std::int32_t>(found - pairs_.begin());
}

// Puts the pair that starts at `position` among the candidates, if there is a merge for it.
bool MergeTable::offer(MergeScratch& scratch, std::int32_t position) const {
  MergeScratch::Symbol& left = scratch.symbols[static_cast<std::size_t>(position)];
  left.pair =
      left.next < 0 ? -1 : find(left.id, scratch.symbols[static_cast<std::size_t>(left.next)].id);
  if (left.pair < 0) {
    return false;
  }
  const std::uint64_t order = pairs_[static_cast<std::size_t>(left.pair)].order;
  scratch.candidates.push_back(order << 32U | static_cast<std::uint32_t>(position));
  return true;
}

void MergeTable::merge_all(MergeScratch& scratch) const {
  std::vector<MergeScratch::Symbol>& symbols = scratch.symbols;
  std::vector<std::uint64_t>& heap = scratch.candidates;
  const auto offer_to_heap = [&](std::int32_t position) {
    if (offer(scratch, position)) {
      std::push_heap(heap.begin(), heap.end(), std::greater<>{});
    }
  };
  const auto len = static_cast<std::int32_t>(symbols.size());
  heap.clear();
  for (std::int32_t i = 0; i < len; ++i) {
    symbols[static_cast<std::size_t>(i)].previous = i - 1;
    symbols[static_cast<std::size_t>(i)].next = i + 1 < len ? i + 1 : -1;
  }
  for (std::int32_t i = 0; i < len; ++i) {
    offer(scratch, i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>{});
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>{});
    const auto order = static_cast<std::uint32_t>(heap.back() >> 32U);
    const auto position = static_cast<std::int32_t>(heap.back() & 0xFFFFFFFFU);
    heap.pop_back();
    MergeScratch::Symbol& left = symbols[static_cast<std::size_t>(position)];
    if (left.pair < 0 || pairs_[static_cast<std::size_t>(left.pair)].order != order) {
      continue;  // this pair is gone: one of its symbols was merged meanwhile
    }
    MergeScratch::Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    left.id = pairs_[static_cast<std::size_t>(left.pair)].result;
    left.next = right.next;
    right.id = MergeScratch::kGone;
    right.pair = -1;
    if (right.next >= 0) {
      symbols[static_cast<std::size_t>(right.next)].previous = position;
    }
    if (left.previous >= 0) {
      offer_to_heap(left.previous);
    }
    offer_to_heap(position);
  }
}

}  // namespace tidekv
