// How far a long prefill is, on stderr.
#pragma once

#include <cstdint>
#include <string>

#include "tidekv/engine.h"

namespace tidekv::cli {

// "prefill: layer 12 of 32, 37 %, 5,104 tokens/s, 0:21 left".
std::string progress_text(const Progress& progress);

// Says nothing during the first two seconds. Then it rewrites one line on a terminal, or adds a
// line every few seconds elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(bool terminal) : terminal_(terminal) {}

  void update(const Progress& progress);
  // The same for any text; `seconds` since the work began.
  void show(double seconds, const std::string& text);
  // Clears the line, so that others can be printed.
  void finish();

 private:
  bool terminal_;
  double next_seconds_ = 2;  // when to print next
  std::size_t shown_ = 0;    // length of the line now on the terminal
};

}  // namespace tidekv::cli
