#include "engine/method.h"

#include <algorithm>
#include <array>

namespace tidekv {
namespace {

// Methods that no rule names.
struct NamedMethod {
  std::string_view name;
  std::string_view schedule;
  std::string_view selector;
  std::int64_t default_sinks = 0;
  std::int64_t default_chunk_len = 0;
  bool cuts_in_decode = false;
  std::int64_t kv_bits = 0;
  bool offloads = false;
};

constexpr std::array<NamedMethod, 7> kNamedMethods = {{
    {"tide-noevict", "layer-major", "full"},
    {"full-chunked", "chunk-major", "full"},
    {"keydiff", "chunk-major", "key-difference", 0, 128, true},
    {"streaming-llm", "chunk-major", "recent", 4, 0, true},
    {"kivi-2", "one-shot", "full", 0, 0, false, 2},
    {"kivi-4", "one-shot", "full", 0, 0, false, 4},
    {"headinfer", "chunk-major", "full", 0, 0, false, 0, true},
}};

template <typename Entry>
const Entry* entry_of(std::span<const Entry> entries, std::string_view name) {
  return &*std::find_if(entries.begin(), entries.end(),
                        [&](const Entry& entry) { return entry.name == name; });
}

}  // namespace

std::vector<Method> all_methods() {
  std::vector<Method> methods;
  for (const ScheduleEntry& schedule : schedule_entries()) {
    for (const SelectorEntry& selector : selector_entries()) {
      // The immediate controls keep what the score asks for and nothing beside it.
      const bool immediate = schedule.run == run_chunk_major;
      const std::int64_t sinks = immediate ? 0 : selector.default_sinks;
      if (schedule.method_prefix.empty()) {
        methods.push_back({std::string(selector.name), &schedule, &selector, sinks});
      } else if (!selector.short_name.empty()) {
        methods.push_back({std::string(schedule.method_prefix) + std::string(selector.short_name),
                           &schedule, &selector, sinks});
      }
    }
  }
  for (const NamedMethod& named : kNamedMethods) {
    methods.push_back({std::string(named.name), entry_of(schedule_entries(), named.schedule),
                       entry_of(selector_entries(), named.selector), named.default_sinks,
                       named.default_chunk_len, named.cuts_in_decode, named.kv_bits,
                       named.offloads});
  }
  return methods;
}

Method under_layer_major(const Method& method) {
  return {method.name, entry_of(schedule_entries(), "layer-major"), method.selector};
}

Result<Method> find_method(const std::string& name) {
  std::string names;
  for (const Method& method : all_methods()) {
    if (method.name == name) {
      return method;
    }
    names += (names.empty() ? "" : ", ") + method.name;
  }
  return Error{ErrorCode::kInvalidArgument,
               "--method '" + name + "' is unknown; choose from " + names};
}

}  // namespace tidekv
