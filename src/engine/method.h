// Methods by name: a schedule crossed with a selector.
//
// A selector's line in its registry gives every schedule's method: "tidekv-snap" runs snapkv
// layer-major with delayed eviction, "snapkv" is the matched whole-prompt control.
#pragma once

#include <string>
#include <vector>

#include "compress/selector.h"
#include "prefill/schedule.h"

namespace tidekv {

struct Method {
  std::string name;
  const ScheduleEntry* schedule = nullptr;
  const SelectorEntry* selector = nullptr;

  // The whole prompt at once, MLP not tiled, scores dense.
  bool whole_prompt() const { return schedule->run == run_one_shot; }
};

std::vector<Method> all_methods();

// The error lists the names.
Result<Method> find_method(const std::string& name);

}  // namespace tidekv
