// Upper and lower case beyond ASCII, as Python's str has them.
#pragma once

#include <cstdint>
#include <span>

namespace tidekv {

// Characters first, first + stride, ..., last; the other case of `code` is code + delta.
struct CaseRange {
  std::int32_t first = 0;
  std::int32_t last = 0;
  std::int32_t stride = 1;
  std::int32_t delta = 0;
};
struct CodeRange {
  std::int32_t first = 0;
  std::int32_t last = 0;
};

// Ascending. Capital sigma is in none: its lower case depends on what stands around it.
std::span<const CaseRange> upper_case_ranges();
std::span<const CaseRange> lower_case_ranges();
std::span<const CodeRange> no_simple_upper();  // their upper case is several characters
std::span<const CodeRange>
no_simple_title();  // as a capital they are not what they are in upper case

}  // namespace tidekv
