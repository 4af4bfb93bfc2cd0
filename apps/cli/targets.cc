#include "targets.h"

#include "tidekv/engine.h"

namespace tidekv::cli {

std::vector<SweepTarget> crossed(const std::vector<std::string>& methods,
                                 const std::vector<std::int64_t>& budgets) {
  std::vector<SweepTarget> all;
  for (const std::string& method : methods) {
    if (keeps_everything(method)) {
      all.push_back({method, PrefillOptions{}.budget});
      continue;
    }
    for (const std::int64_t budget : budgets) {
      all.push_back({method, budget});
    }
  }
  return all;
}

std::int64_t shown_budget(const SweepTarget& target) {
  return keeps_everything(target.method) ? 0 : target.budget;
}

}  // namespace tidekv::cli
