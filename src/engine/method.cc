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
};

constexpr std::array<NamedMethod, 1> kNamedMethods = {{
    {"tide-noevict", "layer-major", "full"},
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
      if (schedule.method_prefix.empty()) {
        methods.push_back({std::string(selector.name), &schedule, &selector});
      } else if (!selector.short_name.empty()) {
        methods.push_back({std::string(schedule.method_prefix) + std::string(selector.short_name),
                           &schedule, &selector});
      }
    }
  }
  for (const NamedMethod& named : kNamedMethods) {
    methods.push_back({std::string(named.name), entry_of(schedule_entries(), named.schedule),
                       entry_of(selector_entries(), named.selector)});
  }
  return methods;
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
