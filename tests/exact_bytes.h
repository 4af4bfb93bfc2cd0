// Bytes for parsers under test.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

namespace tidekv {

// A copy of exactly the right size on the heap: a read past its end shows under a sanitizer.
inline std::vector<std::byte> bytes_of(const std::string& text) {
  std::vector<std::byte> bytes;
  bytes.reserve(text.size());
  std::ranges::transform(text, std::back_inserter(bytes),
                         [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

}  // namespace tidekv
