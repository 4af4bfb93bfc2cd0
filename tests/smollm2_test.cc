// Right against an independent implementation with a real model: SmolLM2-135M-Instruct, Q4_1, which
// Hugging Face Transformers read from the same file; prompts of 47, 2,000 and 8,000 tokens, read
// from tests/data/reference. `tools/get_model smollm2` fetches the model.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "reference/closeness.h"

namespace tidekv::testing {
namespace {

// The fastest backend of this machine; the others are held to it by the conformance tests.
const BackendEntry& backend() { return *available_backends().front(); }

class SmolLm2 : public ::testing::TestWithParam<std::tuple<std::string, ComputeType>> {};

TEST_P(SmolLm2, HiddenStatesAndLogitsAreAsCloseToFloat64AsTransformers) {
  const auto& [name, type] = GetParam();
  expect_as_close_as_transformers(read_smollm2_prompt(name), backend(), type);
}

std::string name_of_case(const ::testing::TestParamInfo<SmolLm2::ParamType>& param) {
  const auto& [name, type] = param.param;
  return name + (type == ComputeType::kF32 ? "_f32" : "_bf16");
}

INSTANTIATE_TEST_SUITE_P(Prompts, SmolLm2,
                         ::testing::Combine(::testing::Values("short", "2k", "8k"),
                                            ::testing::Values(ComputeType::kF32,
                                                              ComputeType::kBF16)),
                         name_of_case);

class SmolLm2Greedy : public ::testing::TestWithParam<std::string> {};

TEST_P(SmolLm2Greedy, FullCacheAnswersTokenForTokenAsFloat64) {
  const ReferencePrompt prompt = read_smollm2_prompt(GetParam());
  ASSERT_EQ(prompt.greedy_ids.size(), 64U);
  expect_greedy_tokens_of_float64(prompt, backend());
}

INSTANTIATE_TEST_SUITE_P(Prompts, SmolLm2Greedy, ::testing::Values("short", "2k", "8k"),
                         [](const ::testing::TestParamInfo<std::string>& param) {
                           return param.param;
                         });

class SmolLm2Compact : public ::testing::TestWithParam<std::string> {};

// The reference masks what SnapKV evicts, every row at its true position.
TEST_P(SmolLm2Compact, CacheAnswersTokenForTokenAsFloat64) {
  const ReferencePrompt prompt = read_smollm2_prompt(GetParam());
  ASSERT_EQ(prompt.compact_greedy_ids.size(), 2U);
  expect_compact_greedy_tokens_of_float64(prompt, backend(), "tidekv-snap");
}

TEST_P(SmolLm2Compact, RetainsThePositionsOfDenseSnapKvInFloat64) {
  const ReferencePrompt prompt = read_smollm2_prompt(GetParam());
  ASSERT_EQ(prompt.selections.size(), 2U);
  expect_positions_of_dense_snapkv(prompt, backend());
}

INSTANTIATE_TEST_SUITE_P(Prompts, SmolLm2Compact, ::testing::Values("2k", "8k"),
                         [](const ::testing::TestParamInfo<std::string>& param) {
                           return param.param;
                         });

}  // namespace
}  // namespace tidekv::testing
