// Texts by their beginnings: finds every one that starts at a place of a text.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace tidekv {

class PieceTrie {
 public:
  struct Entry {
    std::string_view text;  // not empty
    std::int32_t id = -1;
  };

  PieceTrie() = default;

  // `entries` have different texts.
  explicit PieceTrie(std::vector<Entry> entries);

  // Calls found(length, id) for each entry that `text` starts with, shortest first.
  template <typename Found>
  void for_each_prefix(std::string_view text, const Found& found) const {
    std::uint32_t node = 0;
    for (std::size_t i = 0; i < text.size() && !nodes_.empty(); ++i) {
      node = child(node, static_cast<std::uint8_t>(text[i]));
      if (node == 0) {
        return;
      }
      if (nodes_[node].id >= 0) {
        found(i + 1, nodes_[node].id);
      }
    }
  }

 private:
  struct Node {
    std::uint32_t first_child = 0;  // children stand side by side, by byte
    std::int32_t id = -1;
    std::uint16_t num_children = 0;
    std::uint8_t byte = 0;
  };

  std::uint32_t child(std::uint32_t node, std::uint8_t byte) const;  // 0: none

  std::vector<Node> nodes_;  // the root first
};

}  // namespace tidekv
