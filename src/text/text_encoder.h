// Turns the text between added tokens into ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "tidekv/result.h"

namespace tidekv {

// Immutable; safe to share between threads.
class TextEncoder {
 public:
  TextEncoder() = default;
  TextEncoder(const TextEncoder&) = delete;
  TextEncoder& operator=(const TextEncoder&) = delete;
  virtual ~TextEncoder() = default;

  // Appends the ids of one text, already cut at its added tokens.
  virtual Status append_ids(std::span<const TextSegment> segments,
                            std::vector<std::int32_t>& ids) const = 0;

  // `text` as it is when it is cut: the same for two texts that become the same tokens.
  virtual std::string normalized(std::string_view text) const = 0;

  // Tokens that `text` has at least, from a look at its length or bytes; 0 if nothing is sure.
  virtual std::size_t fewest_tokens(std::string_view text) const = 0;
};

}  // namespace tidekv
