#include "engine/method.h"

namespace tidekv {

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
