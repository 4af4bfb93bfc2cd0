#include "progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "output.h"
#include "text_layout.h"

namespace tidekv::cli {
namespace {

constexpr double kTerminalStep = 0.2;  // seconds between two updates
constexpr double kPlainStep = 5;

// "0:21", "1:02:03".
std::string clock_text(double seconds) {
  const std::int64_t total = std::llround(seconds);
  const std::int64_t hours = total / 3600;
  const std::int64_t minutes = total / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, total % 60)
                   : fmt::format("{}:{:02}", minutes, total % 60);
}

}  // namespace

std::string progress_text(const Progress& progress) {
  const double done = std::clamp(progress.fraction, 0.0, 1.0);
  const double tokens = done * static_cast<double>(progress.prompt_len);
  const std::string left =
      done > 0 ? clock_text(progress.seconds * (1 - done) / done) + " left" : "time left unknown";
  const std::int64_t layer = std::min(progress.layer + 1, progress.num_layers);
  return fmt::format("prefill: layer {} of {}, {:.0f} %, {}, {}", layer, progress.num_layers,
                     100 * done, rate_text(tokens, progress.seconds), left);
}

void ProgressLine::update(const Progress& progress) {
  show(progress.seconds, progress_text(progress));
}

void ProgressLine::show(double seconds, const std::string& text) {
  if (seconds < next_seconds_) {
    return;
  }
  next_seconds_ = seconds + (terminal_ ? kTerminalStep : kPlainStep);
  if (terminal_) {
    print_message(fmt::format("\r{:<{}}", text, shown_));
    shown_ = text.size();
  } else {
    print_message(fmt::format("{}\n", text));
  }
}

void ProgressLine::finish() {
  if (shown_ > 0) {
    print_message(fmt::format("\r{:<{}}\r", "", shown_));
    shown_ = 0;
  }
}

}  // namespace tidekv::cli
