// A stretch of a text, in bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace tidekv {

struct TextRange {
  std::size_t begin = 0;
  std::size_t end = 0;  // one past the last byte
};

// Whether [begin, end) has a byte in common with one of `ranges`. None is empty; they are in order
// and apart.
inline bool overlaps(std::span<const TextRange> ranges, std::size_t begin, std::size_t end) {
  const auto first = std::partition_point(
      ranges.begin(), ranges.end(), [begin](const TextRange& range) { return range.end <= begin; });
  return first != ranges.end() && first->begin < end;
}

}  // namespace tidekv
