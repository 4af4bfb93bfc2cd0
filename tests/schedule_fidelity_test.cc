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

// Every selector: delayed, chunk by chunk with streamed scores, and its matched control.
TEST_P(ScheduleFidelity, EverySelectorRetainsTheSameDelayedAndMatched) {
  expect_every_selector_the_same_delayed_and_matched(kToy);
}

// Every method, with budgets that keep little, some, all but one and all of the prompt: targets
// look at windows of different lengths, and some keep all of a layer of which others evict.
TEST_P(ScheduleFidelity, SweepEqualsARequestForEachTarget) {
  std::vector<SweepTarget> targets;
  for (const Method& method : all_methods()) {
    for (const std::int64_t budget :
         {std::int64_t{33}, kToy.budget, kToy.prompt_len - 1, kToy.prompt_len}) {
      if (method.chooses_at_layer_end()) {
        targets.push_back({method.name, budget});
      }
    }
  }
  expect_sweep_equals_requests(kToy, targets);
}

// Mask and scores are held or not: the same bits, in every order of chunks and layers.
TEST_P(ScheduleFidelity, WhatAttentionHoldsChangesNothing) {
  const ModelFolder model(kToy.model);
  const std::vector<std::int32_t> ids = prompt(kToy, model);
  for (const char* method : {"tidekv-snap", "snapkv", "full-chunked", "block-ada", "keydiff",
                             "tidekv-expected", "kivi-2", "headinfer"}) {
    RunSetup flash = setup(kToy);
    flash.options.method = method;
    flash.options.chunk_len = 50;
    const RunCapture reference = run_model(model, ids, flash);
    for (const AttentionImplementation attention :
         {AttentionImplementation::kMasked, AttentionImplementation::kEager}) {
      RunSetup holding = flash;
      holding.options.attention = attention;
      const RunCapture run = run_model(model, ids, holding);
      EXPECT_EQ(first_difference(reference, run), "") << method;
      EXPECT_GT(run.measured_peak.total(), 0);
    }
  }
}

TEST_P(ScheduleFidelity, RowsInsideTheMlpAtOnceChangeNothing) {
  const ModelFolder model(kToy.model);
  const std::vector<std::int32_t> ids = prompt(kToy, model);
  for (const char* method : {"tidekv-snap", "snapkv", "block-snap"}) {
    RunSetup own = setup(kToy);
    own.options.method = method;
    const RunCapture reference = run_model(model, ids, own);
    for (const std::int64_t tile : {1, 7, 100000}) {
      RunSetup tiled = own;
      tiled.options.mlp_tile_len = tile;
      const RunCapture run = run_model(model, ids, tiled);
      EXPECT_EQ(first_difference(reference, run), "") << method << ", tile " << tile;
      EXPECT_EQ(run.planned_peak, run.measured_peak) << method << ", tile " << tile;
    }
  }
}

// The last layer scores with the log-sum-exps that attention leaves, or, where attention runs for
// one row, with those of pass 1: the same scores and positions. Chunks end inside the window.
TEST_P(ScheduleFidelity, PassOneIsWhatAttentionLeft) {
  const ModelFolder model(kToy.model);
  const std::vector<std::int32_t> ids = prompt(kToy, model);
  for (const char* method : {"tidekv-snap", "tidekv-tova", "snapkv", "block-snap", "block-ada"}) {
    for (const std::int64_t chunk_len : {std::int64_t{20}, std::int64_t{150}}) {
      RunSetup from_attention = setup(kToy);
      from_attention.options.method = method;
      from_attention.options.chunk_len = chunk_len;
      from_attention.options.all_rows = true;
      RunSetup from_pass_one = from_attention;
      from_pass_one.options.all_rows = false;
      const LayerCapture left = run_model(model, ids, from_attention).layers.back();
      const LayerCapture found = run_model(model, ids, from_pass_one).layers.back();
      EXPECT_FALSE(left.positions.empty());
      EXPECT_EQ(left.scores, found.scores) << method;
      EXPECT_EQ(left.positions, found.positions) << method;
      EXPECT_EQ(left.cache, found.cache) << method;
    }
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
