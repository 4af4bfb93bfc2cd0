#include "text/piece_trie.h"

#include <algorithm>

namespace tidekv {

// Level by level: the entries below a node are a range of the sorted list.
PieceTrie::PieceTrie(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.text < b.text; });
  struct Range {
    std::size_t begin;
    std::size_t end;
    std::size_t depth;  // bytes that all have in common
  };
  std::vector<Range> ranges = {{0, entries.size(), 0}};  // by node
  nodes_.push_back({});
  for (std::size_t node = 0; node < ranges.size(); ++node) {
    auto [at, end, depth] = ranges[node];
    if (at < end && entries[at].text.size() == depth && depth > 0) {
      nodes_[node].id = entries[at++].id;
    }
    nodes_[node].first_child = static_cast<std::uint32_t>(nodes_.size());
    while (at < end) {
      const char byte = entries[at].text[depth];
      std::size_t next = at;
      while (next < end && entries[next].text[depth] == byte) {
        ++next;
      }
      ranges.push_back({at, next, depth + 1});
      nodes_.push_back({.byte = static_cast<std::uint8_t>(byte)});
      ++nodes_[node].num_children;
      at = next;
    }
  }
}

std::uint32_t PieceTrie::child(std::uint32_t node, std::uint8_t byte) const {
  const auto begin = nodes_.begin() + nodes_[node].first_child;
  const auto end = begin + nodes_[node].num_children;
  const auto found = std::lower_bound(
      begin, end, byte, [](const Node& child, std::uint8_t wanted) { return child.byte < wanted; });
  return found == end || found->byte != byte ? 0
                                             : static_cast<std::uint32_t>(found - nodes_.begin());
}

}  // namespace tidekv
