#include <array>

#include "prefill/schedule.h"

namespace tidekv {
namespace {

constexpr std::array<ScheduleEntry, 3> kSchedules = {{
    {"layer-major", "tidekv-", run_layer_major},
    {"chunk-major", "block-", run_chunk_major},
    {"one-shot", "", run_one_shot},
}};

}  // namespace

std::span<const ScheduleEntry> schedule_entries() { return kSchedules; }

}  // namespace tidekv
