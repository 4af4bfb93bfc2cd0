// The schedule does not change the numbers (Sec. 4.4): hidden states before compression, scores,
// retained positions, cache bytes and greedy tokens are equal bit for bit for every chunk length,
// key-block length and thread count, and for the whole-prompt control.
//
// On a toy model, so that it runs everywhere, sanitizers included; needle_fidelity_test.cc asks the
// same of needle.
#include "system/schedule_fidelity.h"

namespace tidekv::testing {
namespace {

const FidelityCase kToy{"tests/data/models/toy2", 301, 96, {1, 7, 64, 250, 301}};

TEST_P(ScheduleFidelity, ToyModelIsIndependentOfTheSchedule) {
  expect_independent_of_schedule(kToy);
}

// Computing the last layer for one row only changes neither what is retained nor the answer.
TEST_P(ScheduleFidelity, LastRowShortcutChangesNothingThatIsKept) {
  const ModelFolder model(kToy.model);
  const std::vector<std::int32_t> ids = prompt(kToy, model);
  RunSetup all_rows = setup(kToy);
  RunSetup last_row = setup(kToy);
  last_row.options.all_rows = false;
  for (const std::int64_t chunk_len : {std::int64_t{10}, std::int64_t{64}, kToy.prompt_len}) {
    last_row.options.chunk_len = chunk_len;
    RunCapture whole = run_model(model, ids, all_rows);
    const RunCapture part = run_model(model, ids, last_row);
    std::vector<std::byte>& rows = whole.layers.back().hidden;
    rows.erase(rows.begin(),
               rows.end() - static_cast<std::ptrdiff_t>(part.layers.back().hidden.size()));
    EXPECT_EQ(first_difference(whole, part), "") << "chunk " << chunk_len;
  }
}

// Otherwise the tests above could pass with a compressor that keeps everything.
TEST_P(ScheduleFidelity, TheReferenceReallyEvicts) {
  const ModelFolder model(kToy.model);
  const RunCapture reference = control(kToy, model);
  const auto kept = static_cast<std::size_t>(kToy.budget * model.config().num_kv_heads);
  for (const LayerCapture& layer : reference.layers) {
    EXPECT_EQ(layer.positions.size(), kept);
    EXPECT_FALSE(layer.scores.empty());
  }
}

TEST_P(ScheduleFidelity, PromptWithinTheBudgetEqualsTheFullCache) {
  const ModelFolder model(kToy.model);
  const std::vector<std::int32_t> ids = prompt(kToy, model);
  RunSetup roomy = setup(kToy);
  roomy.options.budget = kToy.prompt_len;
  RunSetup full = setup(kToy);
  full.options.method = "full";
  EXPECT_EQ(first_difference(run_model(model, ids, full), run_model(model, ids, roomy)), "");
}

INSTANTIATE_TEST_SUITE_P(Backends, ScheduleFidelity, every_backend_and_type(), name_of_case);

}  // namespace
}  // namespace tidekv::testing
