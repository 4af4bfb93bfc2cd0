#include <array>

#include "prefill/schedule.h"

namespace tidekv {
namespace {

constexpr std::array<ScheduleEntry, 2> kSchedules = {{
    {"layer-major", "tidekv-", run_layer_major},
    {"one-shot", "", run_one_shot},
}};

}  // namespace

std::span<const ScheduleEntry> schedule_entries() { return kSchedules; }

}  // namespace tidekv
