// The fixture of the tests that the schedule does not change the numbers: one backend, one type.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "compress/selector.h"
#include "system/model_run.h"

namespace tidekv::testing {

struct FidelityCase {
  std::string model;
  std::int64_t prompt_len;
  std::int64_t budget;
  std::vector<std::int64_t> chunk_lens;
};

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

  // One sweep over the targets equals a request for each, bit for bit.
  void expect_sweep_equals_requests(const FidelityCase& fidelity,
                                    const std::vector<SweepTarget>& targets) const {
    const ModelFolder model(fidelity.model);
    const std::vector<std::int32_t> ids = prompt(fidelity, model);
    RunSetup run = setup(fidelity);
    const std::vector<RunCapture> swept = run_model_sweep(model, ids, run, targets);
    ASSERT_EQ(swept.size(), targets.size());
    for (std::size_t index = 0; index < targets.size(); ++index) {
      run.options.method = targets[index].method;
      run.options.budget = targets[index].budget;
      EXPECT_EQ(first_difference(run_model(model, ids, run), swept[index]), "")
          << run.options.method << " " << run.options.budget;
    }
  }

  // Layer-major with streaming scores equals the whole prompt with dense ones: hidden states,
  // scores, positions, cache, logits and tokens of every selector, bit for bit.
  void expect_every_selector_the_same_delayed_and_matched(const FidelityCase& fidelity) const {
    const ModelFolder model(fidelity.model);
    const std::vector<std::int32_t> ids = prompt(fidelity, model);
    for (const SelectorEntry& selector : selector_entries()) {
      if (selector.name.empty() || selector.short_name.empty()) {
        continue;  // has no two methods
      }
      RunSetup matched = setup(fidelity);
      matched.options.method = selector.name;
      RunSetup delayed = setup(fidelity);
      delayed.options.method = "tidekv-" + std::string(selector.short_name);
      delayed.options.chunk_len = 50;
      delayed.options.key_block_len = 37;
      const RunCapture reference = run_model(model, ids, matched);
      EXPECT_EQ(first_difference(reference, run_model(model, ids, delayed)), "") << selector.name;
      std::int64_t kept = 0;
      for (const LayerCapture& layer : reference.layers) {
        kept += static_cast<std::int64_t>(layer.positions.size());
      }
      const ModelConfig& config = model.config();
      EXPECT_EQ(kept, config.num_layers * config.num_kv_heads * fidelity.budget) << selector.name;
    }
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

// Any method on one prompt.
class MethodRuns : public ScheduleFidelity {
 protected:
  explicit MethodRuns(const FidelityCase& fidelity) : fidelity_(fidelity) {}

  RunSetup setup_of(const std::string& method, std::int64_t chunk_len) const {
    RunSetup run = setup(fidelity_);
    run.options.method = method;
    run.options.chunk_len = chunk_len;
    return run;
  }
  RunCapture run(const RunSetup& setup) const { return run_model(model_, ids_, setup); }

  const FidelityCase fidelity_;
  const ModelFolder model_{fidelity_.model};
  const std::vector<std::int32_t> ids_ = prompt(fidelity_, model_);
};

inline std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const BackendEntry* entry : available_backends()) {
    names.emplace_back(entry->name);
  }
  return names;
}

// Every backend in both types, for INSTANTIATE_TEST_SUITE_P.
inline auto every_backend_and_type() {
  return ::testing::Combine(::testing::ValuesIn(backend_names()),
                            ::testing::Values(ComputeType::kBF16, ComputeType::kF32));
}

inline std::string name_of_case(
    const ::testing::TestParamInfo<ScheduleFidelity::ParamType>& param) {
  std::string name = std::get<0>(param.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name + (std::get<1>(param.param) == ComputeType::kF32 ? "_f32" : "_bf16");
}

}  // namespace tidekv::testing
