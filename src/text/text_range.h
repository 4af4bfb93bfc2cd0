// A stretch of a text.
#pragma once

#include <cstddef>

namespace tidekv {

// Bytes [begin, end) of a text.
struct TextRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

}  // namespace tidekv
