// Which neighbouring symbols merge into what, and in which order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tidekv {

// Two symbols that may be merged. Lower orders are merged first, the leftmost one of equals.
struct Merge {
  std::int32_t left = -1;
  std::int32_t right = -1;
  std::int32_t result = -1;
  std::uint32_t order = 0;
};

// The symbols of one text while it is merged; buffers are reused from text to text.
struct MergeScratch {
  struct Symbol {
    std::int32_t id =
        -1;  // kGone: merged into the symbol before it; other negative ids never merge
    std::int32_t previous = -1;
    std::int32_t next = -1;
    std::int32_t pair = -1;  // the merge with the next symbol, in MergeTable::pairs_; -1: none
  };
  static constexpr std::int32_t kGone = INT32_MIN;

  std::vector<Symbol> symbols;
  std::vector<std::uint64_t> candidates;  // heap of order << 32 | position, smallest first
};

class MergeTable {
 public:
  MergeTable() = default;

  // Symbols are [0, num_symbols).
  MergeTable(const std::vector<Merge>& merges, std::int64_t num_symbols);

  // Two of the merges that have the same left and right symbol, earlier order first.
  struct Repeated {
    std::uint32_t first = 0;  // orders
    std::uint32_t second = 0;
  };
  std::optional<Repeated> repeated() const;

  // Merges the scratch's symbols, of which only the ids are set: afterwards those that remain are
  // linked from symbol 0 by `next`, each at the place of its first part. O(n log n).
  void merge_all(MergeScratch& scratch) const;

 private:
  // One merge that starts with a given left symbol; those of one left symbol are sorted by `right`.
  struct Pair {
    std::int32_t right = -1;
    std::int32_t result = -1;
    std::uint32_t order = 0;
  };

  std::int32_t find(std::int32_t left, std::int32_t right) const;
  bool offer(MergeScratch& scratch, std::int32_t position) const;

  std::vector<std::uint32_t> pair_begin_;  // [num_symbols + 1]: the pairs of each left symbol
  std::vector<Pair> pairs_;
};

}  // namespace tidekv
