// The schedule does not change the numbers (Sec. 4.4): hidden states before compression, scores,
// retained positions, cache bytes and greedy tokens are equal bit for bit for every chunk length,
// key-block length and thread count, and for the whole-prompt control.
//
// The toy model runs everywhere, sanitizers included; needle runs in release builds, at a prompt of
// 4,099 tokens, so that the window straddles a chunk edge for some chunk lengths.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "system/model_run.h"

namespace tidekv::testing {
namespace {

struct FidelityCase {
  std::string model;
  std::int64_t prompt_len;
  std::int64_t budget;
  std::vector<std::int64_t> chunk_lens;
};

const FidelityCase kToy{"tests/data/models/toy2", 301, 96, {1, 7, 64, 250, 301}};
const FidelityCase kNeedle{"models/needle", 4099, 256, {1, 7, 64, 250, 512, 2048, 4099}};

class ScheduleFidelity : public ::testing::TestWithParam<std::tuple<std::string, ComputeType>> {
 protected:
  const BackendEntry& backend() const {
    for (const BackendEntry* entry : available_backends()) {
      if (entry->name == std::get<0>(GetParam())) {
        return *entry;
      }
    }
    std::abort();
  }

  RunSetup setup(const FidelityCase& fidelity) const {
    RunSetup setup;
    setup.backend = &backend();
    setup.num_threads = 2;
    setup.options.budget = fidelity.budget;
    setup.options.chunk_len = 512;
    setup.options.max_new_tokens = 32;
    setup.options.all_rows = true;  // hidden states of every row, also after the last layer
    setup.options.compute_type = std::get<1>(GetParam());
    return setup;
  }

  // The matched control: whole prompt at once, dense scoring.
  RunCapture control(const FidelityCase& fidelity, const ModelFolder& model) const {
    RunSetup run = setup(fidelity);
    run.options.method = "snapkv";
    return run_model(model, prompt(fidelity, model), run);
  }

  static std::vector<std::int32_t> prompt(const FidelityCase& fidelity, const ModelFolder& model) {
    return random_prompt(fidelity.prompt_len, model.config().vocab_size, 7);
  }

  void expect_independent_of_schedule(const FidelityCase& fidelity) const {
    const ModelFolder model(fidelity.model);
    const std::vector<std::int32_t> ids = prompt(fidelity, model);
    const RunCapture reference = control(fidelity, model);
    ASSERT_EQ(reference.tokens.size(), 32U);
    for (const std::int64_t chunk_len : fidelity.chunk_lens) {
      RunSetup run = setup(fidelity);
      run.options.chunk_len = chunk_len;
      EXPECT_EQ(first_difference(reference, run_model(model, ids, run)), "")
          << "chunk " << chunk_len;
    }
    for (const std::int64_t key_block_len :
         {std::int64_t{64}, std::int64_t{1000}, fidelity.prompt_len}) {
      RunSetup run = setup(fidelity);
      run.options.key_block_len = key_block_len;
      EXPECT_EQ(first_difference(reference, run_model(model, ids, run)), "")
          << "key block " << key_block_len;
    }
    for (const int num_threads : {1, 3, 5}) {
      RunSetup run = setup(fidelity);
      run.num_threads = num_threads;
      EXPECT_EQ(first_difference(reference, run_model(model, ids, run)), "")
          << num_threads << " threads";
    }
  }
};

TEST_P(ScheduleFidelity, ToyModelIsIndependentOfTheSchedule) {
  expect_independent_of_schedule(kToy);
}

#ifdef NDEBUG
TEST_P(ScheduleFidelity, NeedleAt4099TokensIsIndependentOfTheSchedule) {
  expect_independent_of_schedule(kNeedle);
}
#endif

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

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const BackendEntry* entry : available_backends()) {
    names.emplace_back(entry->name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Backends, ScheduleFidelity,
                         ::testing::Combine(::testing::ValuesIn(backend_names()),
                                            ::testing::Values(ComputeType::kBF16,
                                                              ComputeType::kF32)),
                         [](const ::testing::TestParamInfo<ScheduleFidelity::ParamType>& param) {
                           std::string name = std::get<0>(param.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + (std::get<1>(param.param) == ComputeType::kF32 ? "_f32"
                                                                                        : "_bf16");
                         });

}  // namespace
}  // namespace tidekv::testing
