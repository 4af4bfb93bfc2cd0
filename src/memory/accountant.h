// The memory accountant: an exact ledger of device bytes by component (Fig. 4; Eq. (1)).
//
// It knows live bytes now, the peak, what the peak was made of, and the timeline of changes. It
// never allocates after construction, so it can watch code that must not allocate.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "memory/component.h"

namespace tidekv {

// Where in a request the ledger stands; labels the timeline.
enum class Stage : std::uint8_t { kSetup, kPrefill, kCompress, kDecode };

constexpr std::string_view name_of(Stage stage) {
  constexpr std::array<std::string_view, 4> kNames = {"setup", "prefill", "compress", "decode"};
  return kNames[static_cast<std::size_t>(stage)];
}

struct TimelineEvent {
  Stage stage = Stage::kSetup;
  int layer = -1;  // -1 outside the layer loop
  Component component = Component::kWeights;
  std::int64_t delta_bytes = 0;
  std::int64_t live_bytes = 0;  // after the event, all components
};

class Accountant {
 public:
  // Room for this many timeline events; later ones are counted, not kept.
  explicit Accountant(std::int64_t timeline_capacity = 0);

  void add(std::span<const Charge> charges);
  void remove(std::span<const Charge> charges);
  // The same bytes under another name; changes no total.
  void retag(Component from, Component to, std::int64_t bytes);
  // Labels the events that follow.
  void enter(Stage stage, int layer);

  std::int64_t live_bytes() const { return live_.total(); }
  const ComponentBytes& live() const { return live_; }
  std::int64_t peak_bytes() const { return peak_bytes_; }
  const ComponentBytes& peak() const { return peak_; }
  std::span<const TimelineEvent> timeline() const { return timeline_; }
  std::int64_t num_events() const { return num_events_; }

 private:
  void record(Component component, std::int64_t delta_bytes);

  ComponentBytes live_;
  ComponentBytes peak_;
  std::int64_t peak_bytes_ = 0;
  Stage stage_ = Stage::kSetup;
  int layer_ = -1;
  std::int64_t num_events_ = 0;
  std::vector<TimelineEvent> timeline_;
};

}  // namespace tidekv
