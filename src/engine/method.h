// Methods by name: a schedule crossed with a selector.
//
// A selector's line in its registry gives every schedule's method: "tidekv-snap" runs snapkv
// layer-major with delayed eviction, "block-snap" chunk-major with immediate eviction, and "snapkv"
// is the matched whole-prompt control.
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
  std::int64_t default_sinks = 0;      // where the user names no number
  std::int64_t default_chunk_len = 0;  // the same; 0: the largest that fits
  bool cuts_in_decode = false;         // generated rows count in the budget, and may evict others
  std::int64_t kv_bits = 0;            // of an element of the cache; 0: those of its type
  bool offloads = false;               // the cache lives in the offload pool

  // The whole prompt at once, MLP not tiled, scores dense.
  bool whole_prompt() const { return schedule->run == run_one_shot; }
  // Chooses when a layer has seen the whole prompt: the same tokens under either schedule.
  bool chooses_at_layer_end() const { return whole_prompt() || schedule->run == run_layer_major; }
  // Whatever the budget; in fewer bits or in the offload pool, perhaps.
  bool keeps_everything() const { return selector->name == "full"; }
  // Each chunk through all layers: hidden rows of one chunk, and caches from the start.
  bool by_chunk() const { return schedule->run == run_chunk_major; }
};

std::vector<Method> all_methods();

// The same choice of tokens in layer-major order.
Method under_layer_major(const Method& method);

// The error lists the names.
Result<Method> find_method(const std::string& name);

}  // namespace tidekv
