// Right against an independent implementation at 4,079 tokens: Hugging Face Transformers, and dense
// SnapKV computed in it in float64, read from tests/data/reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <tuple>

#include "reference/closeness.h"

namespace tidekv::testing {
namespace {

std::string name_of_backend(const ::testing::TestParamInfo<std::string>& param) {
  return test_name(param.param);
}

class Reference4k : public ::testing::TestWithParam<std::string> {
 protected:
  const BackendEntry& backend() const { return backend_named(GetParam()); }

  // SnapKV as the fixture's, in F32.
  RunCapture compressed_run(const std::string& method, std::int64_t budget,
                            std::int64_t num_tokens) const {
    RunSetup setup;
    setup.backend = &backend();
    setup.num_threads = 2;
    setup.options.method = method;
    setup.options.budget = budget;
    setup.options.window_len = 32;
    setup.options.kernel_len = 7;
    setup.options.chunk_len = 512;
    setup.options.compute_type = ComputeType::kF32;
    setup.options.max_new_tokens = num_tokens;
    return run_model(ModelFolder(prompt_.model), prompt_.prompt_ids, setup);
  }

  const ReferencePrompt prompt_ = read_needle_prompt("4k");
};

// Calls body(layer, head) for every KV head, with a trace for failures.
template <typename Body>
void for_each_head(const std::vector<std::vector<HeadSelection>>& selections, const Body& body) {
  for (std::size_t layer = 0; layer < selections.size(); ++layer) {
    for (std::size_t head = 0; head < selections[layer].size(); ++head) {
      SCOPED_TRACE("layer " + std::to_string(layer) + ", KV head " + std::to_string(head));
      body(layer, head);
    }
  }
}

// Equal outside ties that rounding explains: a position that only one side keeps must score within
// the tolerance of the threshold; where no score is that near, the sets must be the same.
void expect_retained(const std::vector<std::int32_t>& ours, const HeadSelection& reference,
                     const double* scores) {
  ASSERT_EQ(ours.size(), reference.retained.size());
  if (reference.num_near == 0) {
    EXPECT_EQ(ours, reference.retained);
    return;
  }
  std::vector<std::int32_t> different;
  std::set_symmetric_difference(ours.begin(), ours.end(), reference.retained.begin(),
                                reference.retained.end(), std::back_inserter(different));
  for (const std::int32_t position : different) {
    EXPECT_NEAR(scores[position], reference.threshold,
                reference.tie_tolerance * reference.threshold)
        << "position " << position;
  }
}

// The largest error of `ours` relative to the true score, of scores from half the threshold on:
// those that can decide what is retained.
double worst_score_error(const float* ours, const DoubleMatrix& scores, std::int64_t head,
                         double threshold) {
  double worst = 0.0;
  for (std::int64_t i = 0; i < scores.cols; ++i) {
    const double score = scores.row(head)[i];
    if (score >= threshold / 2) {
      worst = std::max(worst, std::abs(static_cast<double>(ours[i]) - score) / score);
    }
  }
  return worst;
}

// Backend, type.
class Reference4kByType : public ::testing::TestWithParam<std::tuple<std::string, ComputeType>> {};

std::string name_of_case(const ::testing::TestParamInfo<Reference4kByType::ParamType>& param) {
  const auto& [backend, type] = param.param;
  return test_name(backend) + (type == ComputeType::kF32 ? "_f32" : "_bf16");
}

TEST_P(Reference4kByType, HiddenStatesAndLogitsAreAsCloseToFloat64AsTransformers) {
  const auto& [backend, type] = GetParam();
  expect_as_close_as_transformers(read_needle_prompt("4k"), backend_named(backend), type);
}

TEST_P(Reference4k, FullCacheAnswersTokenForTokenAsFloat64) {
  expect_greedy_tokens_of_float64(prompt_, backend());
}

TEST_P(Reference4k, CompressedCacheAnswersTokenForTokenAsFloat64) {
  const auto num_tokens = static_cast<std::int64_t>(prompt_.compact_greedy_ids.size());
  for (const char* const method : {"tidekv-snap", "snapkv"}) {
    EXPECT_EQ(compressed_run(method, prompt_.compact_budget, num_tokens).tokens,
              prompt_.compact_greedy_ids)
        << method;
  }
}

TEST_P(Reference4k, RetainsThePositionsOfDenseSnapKvInFloat64) {
  for (const auto& entry : prompt_.selections) {
    const std::int64_t budget = entry.first;
    const std::vector<std::vector<HeadSelection>>& selections = entry.second;
    SCOPED_TRACE("budget " + std::to_string(budget));
    const RunCapture run = compressed_run("tidekv-snap", budget, 0);
    ASSERT_EQ(run.layers.size(), selections.size());
    for_each_head(selections, [&](std::size_t layer, std::size_t head) {
      const std::vector<std::int32_t>& positions = run.layers[layer].positions;
      ASSERT_EQ(positions.size(), selections[layer].size() * static_cast<std::size_t>(budget));
      const auto begin = positions.begin() + static_cast<std::int64_t>(head) * budget;
      expect_retained({begin, begin + budget}, selections[layer][head],
                      prompt_.scores[layer].row(static_cast<std::int64_t>(head)));
    });
  }
}

// Pooled scores are off by at most twice what Transformers' float32 is in the layer; 2^-24 is for
// the float32 that the true ones are stored in.
//
// Of the layer, not of the head and budget: a head's float32_error is that of its most sensitive
// score, one rounding's luck. The 119 scores that count for the first head of layer 2 at budget 128
// are copies of 21 numbers, and a single key decides the largest error.
TEST_P(Reference4k, PooledScoresAreAsCloseToFloat64AsTransformers) {
  const RunCapture run = compressed_run("tidekv-snap", prompt_.compact_budget, 0);
  ASSERT_EQ(run.layers.size(), prompt_.scores.size());
  for_each_head(prompt_.selections.begin()->second, [&](std::size_t layer, std::size_t head) {
    const DoubleMatrix& scores = prompt_.scores[layer];
    ASSERT_EQ(run.layers[layer].scores.size(), scores.values.size());
    double threshold = std::numeric_limits<double>::infinity();  // the lowest of the budgets
    double float32_error = 0.0;
    for (const auto& [budget, selections] : prompt_.selections) {
      threshold = std::min(threshold, selections[layer][head].threshold);
      for (const HeadSelection& selection : selections[layer]) {
        float32_error = std::max(float32_error, selection.float32_error);
      }
    }
    const auto row = static_cast<std::int64_t>(head);
    const float* ours = run.layers[layer].scores.data() + row * scores.cols;
    EXPECT_LE(worst_score_error(ours, scores, row, threshold), 2 * float32_error + 0x1p-24);
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, Reference4k, ::testing::ValuesIn(available_backend_names()),
                         name_of_backend);

INSTANTIATE_TEST_SUITE_P(Backends, Reference4kByType,
                         ::testing::Combine(::testing::ValuesIn(available_backend_names()),
                                            ::testing::Values(ComputeType::kF32,
                                                              ComputeType::kBF16)),
                         name_of_case);

}  // namespace
}  // namespace tidekv::testing
