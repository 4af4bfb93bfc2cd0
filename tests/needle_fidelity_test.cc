// The schedule does not change the numbers of needle either, at a prompt of 4,099 tokens, so that
// the window straddles a chunk edge for some chunk lengths. In release builds.
#include <gtest/gtest.h>

#include "system/schedule_fidelity.h"
#include "tidekv/engine.h"

namespace tidekv::testing {
namespace {

const FidelityCase kNeedle{"models/needle", 4099, 256, {1, 7, 64, 250, 512, 2048, 4099}};

TEST_P(ScheduleFidelity, NeedleAt4099TokensIsIndependentOfTheSchedule) {
  expect_independent_of_schedule(kNeedle);
}

TEST_P(ScheduleFidelity, NeedlesSelectorsRetainTheSameDelayedAndMatched) {
  expect_every_selector_the_same_delayed_and_matched({"models/needle", 1001, 128, {}});
}

// Each chunk through all layers: without eviction the same bits again, with it others.
TEST_P(ScheduleFidelity, NeedleByChunksIsTheFullCacheUnlessItEvicts) {
  const ModelFolder model(kNeedle.model);
  const std::vector<std::int32_t> ids = prompt(kNeedle, model);
  RunSetup run = setup(kNeedle);
  run.options.method = "full";
  const RunCapture full = run_model(model, ids, run);
  for (const std::int64_t chunk_len : {64, 512, 4099}) {
    run.options.method = "full-chunked";
    run.options.chunk_len = chunk_len;
    EXPECT_EQ(first_difference(full, run_model(model, ids, run)), "") << "chunk " << chunk_len;
  }
  run.options.chunk_len = 512;
  run.options.method = "tidekv-snap";
  const RunCapture delayed = run_model(model, ids, run);
  EXPECT_EQ(delayed.layers.back().hidden, full.layers.back().hidden);
  for (const char* method : {"block-snap", "block-recent", "keydiff"}) {
    run.options.method = method;
    const RunCapture immediate = run_model(model, ids, run);
    EXPECT_NE(immediate.layers.back().hidden, full.layers.back().hidden) << method;
    EXPECT_EQ(immediate.layers.back().retained_lens, delayed.layers.back().retained_lens) << method;
  }
}

TEST_P(ScheduleFidelity, NeedleSweepEqualsARequestForEachTarget) {
  expect_sweep_equals_requests(
      kNeedle, {{"tidekv-snap", 64}, {"full", 64}, {"pyramidkv", 256}, {"tidekv-ada", 256}});
}

// The paper's rows of immediate eviction, on a real model: drift above 0.05, more of it without a
// selector, more with less budget, and more the later the chunk (Table 8, Fig. 6).
TEST(NeedleFidelity, ImmediateEvictionDriftsAsInThePaper) {
  const Engine engine =
      Engine::load(std::string(TIDEKV_SOURCE_DIR) + "/models/needle", {.num_threads = 2}).value();
  FidelityRequest request;
  request.prompt = random_prompt(kNeedle.prompt_len, engine.model().vocab_size, 7);
  request.targets = {
      {"tidekv-snap", 1024}, {"block-snap", 1024}, {"block-recent", 1024}, {"block-snap", 256}};
  request.num_next = 16;
  const FidelityReport report = engine.fidelity(request, {}).value();
  const TargetFidelity& delayed = report.targets[0];
  EXPECT_EQ(delayed.hidden.relative_l2, 0);
  EXPECT_EQ(delayed.hidden.cosine, 1);
  EXPECT_EQ(delayed.js_divergence, 0);
  const TargetFidelity& snap = report.targets[1];
  EXPECT_GT(snap.hidden.relative_l2, 0.05);
  EXPECT_GT(report.targets[2].hidden.relative_l2, snap.hidden.relative_l2);
  EXPECT_LT(report.targets[2].hidden.cosine, snap.hidden.cosine);
  EXPECT_GT(report.targets[3].hidden.relative_l2, snap.hidden.relative_l2);
  EXPECT_GT(snap.chunks[7].relative_l2, snap.chunks[3].relative_l2);
}

INSTANTIATE_TEST_SUITE_P(Backends, ScheduleFidelity, every_backend_and_type(), name_of_case);

}  // namespace
}  // namespace tidekv::testing
