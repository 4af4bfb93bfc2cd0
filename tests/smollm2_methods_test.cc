// Every method on a real quantised model, SmolLM2-135M-Instruct Q4_1, on this machine's fastest
// backend. `tools/get_model smollm2` fetches the model.
#include <gtest/gtest.h>

#include "system/schedule_fidelity.h"
#include "tidekv/engine.h"

namespace tidekv::testing {
namespace {

const FidelityCase kSmolLm2{"models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf", 297, 100, {}};

TEST_P(ScheduleFidelity, SelectorsOfSmolLm2RetainTheSameDelayedAndMatched) {
  expect_every_selector_the_same_delayed_and_matched(kSmolLm2);
}

TEST_P(ScheduleFidelity, EveryMethodRunsSmolLm2AsPlanned) {
  const ModelFolder model(kSmolLm2.model);
  const std::vector<std::int32_t> ids = prompt(kSmolLm2, model);
  for (const std::string& method : method_names()) {
    RunSetup run = setup(kSmolLm2);
    run.options.method = method;
    run.options.chunk_len = 64;
    run.options.max_new_tokens = 4;
    const RunCapture capture = run_model(model, ids, run);
    EXPECT_EQ(capture.tokens.size(), 4U) << method;
    EXPECT_EQ(capture.planned_peak, capture.measured_peak) << method;
  }
}

INSTANTIATE_TEST_SUITE_P(FastestBackend, ScheduleFidelity,
                         ::testing::Combine(::testing::Values(backend_names().front()),
                                            ::testing::Values(ComputeType::kBF16)),
                         name_of_case);

}  // namespace
}  // namespace tidekv::testing
