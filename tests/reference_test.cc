// Right against an independent implementation: Hugging Face Transformers on a 465-token needle
// prompt and on toy models of every weight type, read from tests/data/reference. The 4K prompt is
// in reference_4k_test.cc.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>

#include "reference/closeness.h"

namespace tidekv::testing {
namespace {

const std::string kNeedle = "needle";

ReferencePrompt read_prompt(const std::string& model) {
  return model == kNeedle ? read_needle_prompt("short") : read_toy_prompt(model);
}

// Backend, model, type.
class Reference
    : public ::testing::TestWithParam<std::tuple<std::string, std::string, ComputeType>> {};

std::string case_name(const ::testing::TestParamInfo<Reference::ParamType>& param) {
  const auto& [backend, model, type] = param.param;
  return test_name(backend + "_" + model + (type == ComputeType::kF32 ? "_f32" : "_bf16"));
}

TEST_P(Reference, HiddenStatesAndLogitsAreAsCloseToFloat64AsTransformers) {
  const auto& [backend, model, type] = GetParam();
  expect_as_close_as_transformers(read_prompt(model), backend_named(backend), type);
}

INSTANTIATE_TEST_SUITE_P(
    Backends, Reference,
    ::testing::Combine(::testing::ValuesIn(available_backend_names()),
                       ::testing::Values(kNeedle, "toy2", "toy-untied-llama3", "toy-f16",
                                         "toy-llama2", "toy-rope-freqs", "toy-odd-head",
                                         "toy-biased", "toy-linear-rope", "toy-mistral",
                                         "toy-qwen2", "toy-qwen3", "toy-quantised",
                                         "toy-quantised-qwen2", "toy-k-quantised"),
                       ::testing::Values(ComputeType::kF32, ComputeType::kBF16)),
    case_name);

// The GGUF files that the gguf package wrote from the same weights.
RunCapture run_of(const std::string& path, const ReferencePrompt& prompt, ComputeType type) {
  RunSetup setup;
  setup.backend = available_backends().front();
  setup.num_threads = 2;
  setup.options.budget = 64;
  setup.options.chunk_len = 50;
  setup.options.compute_type = type;
  setup.options.max_new_tokens = 8;
  return run_model(ModelFolder(path), prompt.prompt_ids, setup);
}

class GgufFile : public ::testing::TestWithParam<std::tuple<std::string, ComputeType>> {};

// Hidden states, scores, retained positions, cache bytes and tokens: the order of query and key
// rows in the file leaves no trace.
TEST_P(GgufFile, RunsBitForBitAsTheFolderOfTheSameWeights) {
  const auto& [model, type] = GetParam();
  const ReferencePrompt prompt = read_prompt(model);
  ASSERT_NE(prompt.gguf, "");
  EXPECT_EQ(first_difference(run_of(prompt.model, prompt, type), run_of(prompt.gguf, prompt, type)),
            "");
}

INSTANTIATE_TEST_SUITE_P(
    Models, GgufFile,
    ::testing::Combine(::testing::Values("toy2", "toy-f16", "toy-biased", "toy-linear-rope",
                                         "toy-llama2", "toy-mistral", "toy-odd-head", "toy-qwen2",
                                         "toy-qwen3"),
                       ::testing::Values(ComputeType::kF32, ComputeType::kBF16)),
    [](const ::testing::TestParamInfo<GgufFile::ParamType>& param) {
      return test_name(std::get<0>(param.param) +
                       (std::get<1>(param.param) == ComputeType::kF32 ? "_f32" : "_bf16"));
    });

// Its divisors were rounded by whoever wrote the file: not the same bits as Transformers' rule.
TEST(GgufFile, WithRopeDivisorsIsAsCloseToFloat64AsTransformers) {
  ReferencePrompt prompt = read_prompt("toy-rope-freqs");
  prompt.model = prompt.gguf;
  expect_as_close_as_transformers(prompt, *available_backends().front(), ComputeType::kF32);
}

class ReferenceGreedy : public ::testing::TestWithParam<std::string> {};

TEST_P(ReferenceGreedy, NeedleAnswersTheShortPromptTokenForTokenAsFloat64) {
  expect_greedy_tokens_of_float64(read_prompt(kNeedle), backend_named(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Backends, ReferenceGreedy, ::testing::ValuesIn(available_backend_names()),
                         [](const ::testing::TestParamInfo<std::string>& param) {
                           return test_name(param.param);
                         });

// The measure itself, on rows whose errors are known: 1/2, 1/4 and 1/10.
TEST(MeasureRows, GivesTheRootMeanSquareAndTheMedianOfRelativeRowErrors) {
  const DoubleMatrix reference{3, 2, {3.0, 4.0, 0.0, 2.0, 10.0, 0.0}};
  const std::vector<float> values{3.0F, 6.5F, 0.0F, 2.5F, 9.0F, 0.0F};
  const RowErrors errors = measure_rows(values, reference);
  EXPECT_DOUBLE_EQ(errors.median_row_rel, 0.25);
  EXPECT_DOUBLE_EQ(errors.rms_rel, std::sqrt((0.25 + 0.0625 + 0.01) / 3.0));
}

}  // namespace
}  // namespace tidekv::testing
