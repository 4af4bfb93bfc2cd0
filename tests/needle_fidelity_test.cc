// The schedule does not change the numbers of needle either, at a prompt of 4,099 tokens, so that
// the window straddles a chunk edge for some chunk lengths. In release builds.
#include "system/schedule_fidelity.h"

namespace tidekv::testing {
namespace {

const FidelityCase kNeedle{"models/needle", 4099, 256, {1, 7, 64, 250, 512, 2048, 4099}};

TEST_P(ScheduleFidelity, NeedleAt4099TokensIsIndependentOfTheSchedule) {
  expect_independent_of_schedule(kNeedle);
}

INSTANTIATE_TEST_SUITE_P(Backends, ScheduleFidelity, every_backend_and_type(), name_of_case);

}  // namespace
}  // namespace tidekv::testing
