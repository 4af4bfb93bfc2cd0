#include "memory/accountant.h"

#include "base/check.h"

namespace tidekv {

Accountant::Accountant(std::int64_t timeline_capacity) {
  timeline_.reserve(static_cast<std::size_t>(timeline_capacity));
}

void Accountant::add(std::span<const Charge> charges) {
  for (const Charge& charge : charges) {
    live_[charge.component] += charge.bytes;
    record(charge.component, charge.bytes);
  }
  if (live_.total() > peak_bytes_) {
    peak_bytes_ = live_.total();
    peak_ = live_;
  }
}

void Accountant::remove(std::span<const Charge> charges) {
  for (const Charge& charge : charges) {
    live_[charge.component] -= charge.bytes;
    TIDEKV_CHECK_OP(live_[charge.component], >=, 0);
    record(charge.component, -charge.bytes);
  }
}

void Accountant::retag(Component from, Component to, std::int64_t bytes) {
  live_[from] -= bytes;
  TIDEKV_CHECK_OP(live_[from], >=, 0);
  record(from, -bytes);
  live_[to] += bytes;
  record(to, bytes);
}

void Accountant::enter(Stage stage, int layer) {
  stage_ = stage;
  layer_ = layer;
}

void Accountant::record(Component component, std::int64_t delta_bytes) {
  if (delta_bytes == 0) {
    return;
  }
  ++num_events_;
  if (timeline_.size() < timeline_.capacity()) {
    timeline_.push_back({stage_, layer_, component, delta_bytes, live_.total()});
  }
}

}  // namespace tidekv
