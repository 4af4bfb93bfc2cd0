// Right against an independent implementation at 4,079 tokens: Hugging Face Transformers, and dense
// SnapKV computed in it in float64, read from tests/data/reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
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

  const ReferencePrompt prompt_ = read_needle_prompt("4k");
};

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
  for (const char* const method : {"tidekv-snap", "snapkv"}) {
    expect_compact_greedy_tokens_of_float64(prompt_, backend(), method);
  }
}

TEST_P(Reference4k, RetainsThePositionsOfDenseSnapKvInFloat64) {
  expect_positions_of_dense_snapkv(prompt_, backend());
}

// Pooled scores are off by at most twice what Transformers' float32 is in the layer; 2^-24 is for
// the float32 that the true ones are stored in.
//
// Of the layer, not of the head and budget: a head's float32_error is that of its most sensitive
// score, one rounding's luck. The 119 scores that count for the first head of layer 2 at budget 128
// are copies of 21 numbers, and a single key decides the largest error.
TEST_P(Reference4k, PooledScoresAreAsCloseToFloat64AsTransformers) {
  const RunCapture run = run_compressed(prompt_, backend(), {"tidekv-snap", 256}, 0);
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
