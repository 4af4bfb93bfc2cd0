#include "model/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace tidekv {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// As Transformers 4 writes it; GQA, head_dim not hidden_size over heads.
constexpr const char* kConfig4 = R"({
  "architectures": ["LlamaForCausalLM"],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "bos_token_id": 128000,
  "eos_token_id": [128001, 128008, 128009],
  "head_dim": 64,
  "hidden_act": "silu",
  "hidden_size": 2048,
  "initializer_range": 0.02,
  "intermediate_size": 8192,
  "max_position_embeddings": 131072,
  "mlp_bias": false,
  "model_type": "llama",
  "num_attention_heads": 24,
  "num_hidden_layers": 16,
  "num_key_value_heads": 8,
  "pretraining_tp": 1,
  "rms_norm_eps": 1e-05,
  "rope_scaling": {
    "factor": 32.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192,
    "rope_type": "llama3"
  },
  "rope_theta": 500000.0,
  "tie_word_embeddings": true,
  "torch_dtype": "bfloat16",
  "transformers_version": "4.45.0",
  "use_cache": true,
  "vocab_size": 128256
})";

// The same model as Transformers 5 writes it.
constexpr const char* kConfig5 = R"({
  "architectures": ["LlamaForCausalLM"],
  "attention_bias": false,
  "attention_dropout": 0.0,
  "bos_token_id": 128000,
  "dtype": "bfloat16",
  "eos_token_id": [128001, 128008, 128009],
  "head_dim": 64,
  "hidden_act": "silu",
  "hidden_size": 2048,
  "initializer_range": 0.02,
  "intermediate_size": 8192,
  "max_position_embeddings": 131072,
  "mlp_bias": false,
  "model_type": "llama",
  "num_attention_heads": 24,
  "num_hidden_layers": 16,
  "num_key_value_heads": 8,
  "pad_token_id": null,
  "pretraining_tp": 1,
  "rms_norm_eps": 1e-05,
  "rope_parameters": {
    "factor": 32.0,
    "high_freq_factor": 4.0,
    "low_freq_factor": 1.0,
    "original_max_position_embeddings": 8192,
    "rope_theta": 500000.0,
    "rope_type": "llama3"
  },
  "tie_word_embeddings": true,
  "transformers_version": "5.0.0",
  "use_cache": true,
  "vocab_size": 128256
})";

std::string error_of(const std::string& config, const std::string& generation = "") {
  const auto result = parse_model_config(config, generation, "m/config.json");
  return result.ok() ? "parsed" : result.error().message;
}

// A small config that is right, with `fields` put before (`"name": value, `); each name in it
// takes the place of the default.
std::string config_with(const std::string& fields) {
  struct Default {
    std::string name;
    std::string value;
  };
  const Default defaults[] = {
      {"model_type", "\"llama\""},  {"hidden_size", "64"},
      {"num_hidden_layers", "2"},   {"num_attention_heads", "4"},
      {"num_key_value_heads", "2"}, {"intermediate_size", "128"},
      {"vocab_size", "100"},        {"torch_dtype", "\"float32\""},
      {"rms_norm_eps", "1e-5"},     {"max_position_embeddings", "512"},
  };
  std::string json = "{" + fields;
  for (const Default& field : defaults) {
    if (fields.find("\"" + field.name + "\":") == std::string::npos) {
      json += (json.size() == 1 ? "\"" : ", \"") + field.name + "\": " + field.value;
    }
  }
  return json + "}";
}

ModelConfig parsed(const std::string& fields, const std::string& generation = "") {
  auto result = parse_model_config(config_with(fields), generation, "m/config.json");
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? result.value() : ModelConfig{};
}

class BothVersions : public testing::TestWithParam<const char*> {};

TEST_P(BothVersions, GiveTheSameModel) {
  const auto result = parse_model_config(GetParam(), "", "config.json");
  ASSERT_TRUE(result.ok()) << result.error().message;
  const ModelConfig& config = result.value();
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.num_layers, 16);
  EXPECT_EQ(config.hidden_dim, 2048);
  EXPECT_EQ(config.ffn_dim, 8192);
  EXPECT_EQ(config.num_q_heads, 24);
  EXPECT_EQ(config.num_kv_heads, 8);
  EXPECT_EQ(config.head_dim, 64);
  EXPECT_EQ(config.vocab_size, 128256);
  EXPECT_EQ(config.max_positions, 131072);
  EXPECT_EQ(config.rms_norm_eps, 1e-5);
  EXPECT_TRUE(config.tied_embeddings);
  EXPECT_EQ(config.dtype, DType::kBF16);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(128001, 128008, 128009));
  EXPECT_EQ(config.rope, (RopeConfig{.type = RopeType::kLlama3,
                                     .theta = 500000.0,
                                     .factor = 32.0,
                                     .low_freq_factor = 1.0,
                                     .high_freq_factor = 4.0,
                                     .original_max_positions = 8192}));
}

TEST_P(BothVersions, CutAtAnyByteAreErrorsThatNameTheFile) {
  const std::string whole = GetParam();
  ASSERT_LE(whole.size(), 4096U);
  for (std::size_t len = 0; len < whole.size(); ++len) {
    ASSERT_THAT(error_of(whole.substr(0, len)),
                AllOf(HasSubstr("m/config.json: "), HasSubstr("expected")))
        << len;
  }
}

INSTANTIATE_TEST_SUITE_P(Transformers, BothVersions, testing::Values(kConfig4, kConfig5));

TEST(ModelConfig, ReadsTheNeedleModel) {
  const auto config = read_model_config(TIDEKV_SOURCE_DIR "/models/needle");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config.value().num_layers, 6);
  EXPECT_EQ(config.value().head_dim, 64);
  EXPECT_EQ(config.value().group_size(), 2);
  EXPECT_EQ(config.value().rope, (RopeConfig{.theta = 500000.0}));
  EXPECT_THAT(config.value().eos_token_ids, ElementsAre(1));
}

TEST(ModelConfig, TakesWhatTransformersTakesForAbsentFields) {
  const std::string config = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
      "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100, "dtype": "float16"})";
  const auto result = parse_model_config(config, "", "config.json");
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result.value().num_kv_heads, 4);
  EXPECT_EQ(result.value().head_dim, 16);
  EXPECT_EQ(result.value().max_positions, 2048);
  EXPECT_EQ(result.value().rms_norm_eps, 1e-6);
  EXPECT_FALSE(result.value().tied_embeddings);
  EXPECT_EQ(result.value().rope, (RopeConfig{.theta = 10000.0}));
  EXPECT_EQ(result.value().dtype, DType::kF16);
  EXPECT_THAT(result.value().eos_token_ids, IsEmpty());
}

TEST(ModelConfig, KnowsWhereEachArchitectureHasBiasesAndNorms) {
  const auto has = [](const ModelConfig& config) {
    return std::vector<bool>{config.qkv_bias, config.output_bias, config.mlp_bias, config.qk_norm};
  };
  EXPECT_THAT(has(parsed("")), ElementsAre(false, false, false, false));
  EXPECT_THAT(has(parsed(R"("attention_bias": true, "mlp_bias": true)")),
              ElementsAre(true, true, true, false));
  EXPECT_THAT(has(parsed(R"("model_type": "mistral", "sliding_window": null)")),
              ElementsAre(false, false, false, false));
  EXPECT_THAT(has(parsed(R"("model_type": "qwen2")")), ElementsAre(true, false, false, false));
  EXPECT_THAT(has(parsed(R"("model_type": "qwen3")")), ElementsAre(false, false, false, true));
  EXPECT_THAT(has(parsed(R"("model_type": "qwen3", "attention_bias": true)")),
              ElementsAre(true, true, false, true));
  EXPECT_EQ(parsed(R"("model_type": "qwen2")").architecture, "qwen2");
  EXPECT_EQ(parsed(R"("model_type": "qwen3")").head_dim, 128);
}

TEST(ModelConfig, IgnoresASlidingWindowThatIsSwitchedOff) {
  EXPECT_EQ(error_of(config_with(R"("model_type": "qwen2", "sliding_window": 131072,
      "use_sliding_window": false, "max_window_layers": 28)")),
            "parsed");
}

TEST(ModelConfig, AcceptsWhatDoesNotChangeTheComputation) {
  EXPECT_EQ(error_of(config_with(R"("sliding_window": null, "quantization_config": null,
      "rope_interleaved": false, "is_llama_config": true, "layer_types":
      ["full_attention", "full_attention"], "pretraining_tp": 2, "partial_rotary_factor": 1.0,
      "pruned_heads": {}, "architectures": null, "head_dim": null)")),
            "parsed");
}

TEST(ModelConfig, MayLeaveTheTypeOfTheWeightsToTheirFile) {
  EXPECT_EQ(parsed(R"("torch_dtype": null)").dtype, std::nullopt);
  EXPECT_EQ(parsed(R"("torch_dtype": null, "dtype": "float16")").dtype, DType::kF16);
}

TEST(ModelConfig, ReadsRopeOfAllSpellings) {
  const RopeConfig plain = {.theta = 20000.0};
  EXPECT_EQ(parsed(R"("rope_theta": 20000)").rope, plain);
  EXPECT_EQ(parsed(R"("rope_theta": 20000, "rope_scaling": null)").rope, plain);
  EXPECT_EQ(parsed(R"("rope_theta": 2e4, "rope_scaling": {"type": "default"})").rope, plain);
  EXPECT_EQ(parsed(R"("rope_theta": 2e4, "rope_scaling": {"type": "linear", "factor": 4.0})").rope,
            (RopeConfig{.type = RopeType::kLinear, .theta = 20000.0, .factor = 4.0}));
  EXPECT_EQ(parsed(R"("rope_parameters": {"rope_theta": 20000.0, "rope_type": "default"})").rope,
            plain);
  EXPECT_EQ(parsed(R"("rope_parameters": {"rope_theta": 20000.0})").rope, plain);
  EXPECT_EQ(parsed(R"("rope_theta": 20000, "rope_scaling": null,
                      "rope_parameters": {"rope_theta": 20000.0, "rope_type": "default",
                      "partial_rotary_factor": 1.0}, "partial_rotary_factor": 1)")
                .rope,
            plain);

  const RopeConfig scaled = {.type = RopeType::kLlama3,
                             .theta = 20000.0,
                             .factor = 8.0,
                             .low_freq_factor = 1.0,
                             .high_freq_factor = 2.0,
                             .original_max_positions = 64};
  const std::string rest = R"("factor": 8, "low_freq_factor": 1, "high_freq_factor": 2,
                              "original_max_position_embeddings": 64})";
  EXPECT_EQ(parsed(R"("rope_theta": 20000, "rope_scaling": {"type": "llama3", )" + rest).rope,
            scaled);
  EXPECT_EQ(parsed(R"("rope_theta": 20000, "rope_scaling": {"rope_type": "llama3",
                      "type": "llama3", )" +
                   rest)
                .rope,
            scaled);
  EXPECT_EQ(parsed(R"("rope_theta": 20000, "rope_parameters": {"rope_type": "llama3", )" + rest +
                   R"(, "rope_scaling": {"rope_type": "llama3", )" + rest)
                .rope,
            scaled);
}

TEST(ModelConfig, UnitesTheEndTokensOfBothFiles) {
  EXPECT_THAT(parsed(R"("eos_token_id": 7)").eos_token_ids, ElementsAre(7));
  EXPECT_THAT(parsed(R"("eos_token_id": null)").eos_token_ids, IsEmpty());
  EXPECT_THAT(parsed(R"("eos_token_id": [])").eos_token_ids, IsEmpty());
  EXPECT_THAT(parsed("", R"({"eos_token_id": 8})").eos_token_ids, ElementsAre(8));
  EXPECT_THAT(parsed(R"("eos_token_id": 7)", R"({"eos_token_id": [8, 7, 9, 8]})").eos_token_ids,
              ElementsAre(7, 8, 9));
  EXPECT_THAT(parsed(R"("eos_token_id": [7, 9])", R"({"do_sample": true})").eos_token_ids,
              ElementsAre(7, 9));
}

TEST(ModelConfig, NamesTheGenerationConfigInItsErrors) {
  EXPECT_THAT(error_of(config_with(""), R"({"eos_token_id": "x"})"),
              AllOf(HasSubstr("m/generation_config.json: field 'eos_token_id'"),
                    HasSubstr("expected an integer from 0 to 99")));
  const std::string whole = R"({"eos_token_id": [1, 2], "do_sample": true})";
  for (std::size_t len = 1; len < whole.size(); ++len) {
    ASSERT_THAT(error_of(config_with(""), whole.substr(0, len)),
                AllOf(HasSubstr("m/generation_config.json: "), HasSubstr("expected")))
        << len;
  }
}

struct BadConfig {
  std::string fields;  // put into a config that is right
  std::string field;   // that the error names
  std::string complaint;
};

class Refused : public testing::TestWithParam<BadConfig> {};

TEST_P(Refused, ByNameOfFileAndField) {
  const std::string error = error_of(config_with(GetParam().fields));
  EXPECT_THAT(error, AllOf(HasSubstr("m/config.json: field '" + GetParam().field + "'"),
                           HasSubstr(GetParam().complaint), HasSubstr("expected")))
      << GetParam().fields;
}

class Unsupported : public testing::TestWithParam<BadConfig> {};

TEST_P(Unsupported, IsRefusedByName) {
  const auto result = parse_model_config(config_with(GetParam().fields), "", "m/config.json");
  ASSERT_FALSE(result.ok()) << GetParam().fields;
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported) << result.error().message;
  EXPECT_THAT(result.error().message,
              AllOf(HasSubstr("m/config.json: field '" + GetParam().field + "'"),
                    HasSubstr(GetParam().complaint), HasSubstr("expected")));
}

const BadConfig kUnsupported[] = {
    {R"("model_type": "mixtral")", "model_type",
     "'mixtral'; expected one of 'llama', 'mistral', 'qwen2', 'qwen3'"},
    {R"("model_type": "qwen2_moe")", "model_type", "'qwen2_moe'"},
    {R"("model_type": "mistral", "sliding_window": 4096)", "sliding_window", "the number 4096"},
    // Transformers' default is a window.
    {R"("model_type": "mistral")", "sliding_window", "missing; expected null"},
    {R"("model_type": "qwen2", "use_sliding_window": true, "sliding_window": 4096)",
     "use_sliding_window", "true"},
    {R"("model_type": "qwen2", "architectures": ["LlamaForCausalLM"])", "architectures",
     "'LlamaForCausalLM'; expected a list of 'Qwen2ForCausalLM'"},
    {R"("model_type": "qwen2", "attention_bias": true)", "attention_bias", "qwen2 has no such"},
    {R"("model_type": "mistral", "sliding_window": null, "mlp_bias": true)", "mlp_bias",
     "mistral has no such"},
    // Not "hidden_size is missing": the file is fine, only not for us.
    {R"("model_type": "gpt2", "hidden_size": null)", "model_type", "'gpt2'"},
    {R"("architectures": ["LlamaForSequenceClassification"])", "architectures",
     "'LlamaForSequenceClassification'"},
    {R"("architectures": ["LlamaForCausalLM", "Other"])", "architectures", "'Other'"},
    {R"("architectures": [3])", "architectures", "the number 3"},
    {R"("hidden_act": "gelu")", "hidden_act", "'gelu'; expected 'silu'"},
    {R"("sliding_window": 4096)", "sliding_window", "the number 4096"},
    {R"("use_sliding_window": true)", "use_sliding_window", "true"},
    {R"("layer_types": ["full_attention", "sliding_attention"])", "layer_types",
     "'sliding_attention'"},
    {R"("quantization_config": {"quant_method": "gptq"})", "quantization_config", "an object"},
    {R"("quantization_config": {})", "quantization_config", "an object"},
    {R"("compression_config": {})", "compression_config", "an object"},
    {R"("partial_rotary_factor": 0.5)", "partial_rotary_factor", "the number 0.5; expected 1"},
    {R"("rope_interleaved": true)", "rope_interleaved", "true"},
    {R"("no_rope_layers": [1, 0])", "no_rope_layers", "an array"},
    {R"("num_local_experts": 8)", "num_local_experts", "the number 8"},
    {R"("logits_scaling": 8.0)", "logits_scaling", "the number 8"},
    {R"("attention_multiplier": 0.1)", "attention_multiplier", "the number"},
    {R"("final_logit_softcapping": 30.0)", "final_logit_softcapping", "the number 30"},
    {R"("is_encoder_decoder": true)", "is_encoder_decoder", "true"},
    {R"("auto_map": {"AutoModelForCausalLM": "x.Y"})", "auto_map", "an object"},
    {R"("torch_dtype": "float64")", "torch_dtype", "'float64'; expected 'bfloat16', 'float16'"},
    {R"("torch_dtype": "int8")", "torch_dtype", "'int8'"},
    {R"("dtype": "auto")", "dtype", "'auto'"},
    {R"("rope_scaling": {"type": "linear", "factor": 2.0, "low_freq_factor": 1.0})",
     "rope_scaling.low_freq_factor", "no such key with rope type linear"},
    {R"("rope_scaling": {"type": "dynamic", "factor": 2.0})", "rope_scaling.type",
     "'dynamic'; expected \"default\", \"linear\" or \"llama3\""},
    {R"("rope_scaling": {"rope_type": "yarn", "factor": 2.0})", "rope_scaling.rope_type", "'yarn'"},
    {R"("rope_scaling": {"rope_type": "dynamic"})", "rope_scaling.rope_type", "'dynamic'"},
    {R"("rope_parameters": {"rope_type": "longrope"})", "rope_parameters.rope_type", "'longrope'"},
    // A factor without a type, or a type that has none, must not be ignored.
    {R"("rope_scaling": {"factor": 2.0})", "rope_scaling.factor", "the number 2"},
    {R"("rope_parameters": {"rope_type": "default", "factor": 2.0})", "rope_parameters.factor",
     "no such key with rope type default"},
    {R"("rope_parameters": {"full_attention": {"rope_theta": 1e4}})",
     "rope_parameters.full_attention", "an object"},
    {R"("rope_scaling": {"rope_type": "llama3", "beta_fast": 32})", "rope_scaling.beta_fast",
     "no such key with rope type llama3"},
};
INSTANTIATE_TEST_SUITE_P(Table, Unsupported, testing::ValuesIn(kUnsupported));

const BadConfig kBadFields[] = {
    {R"("model_type": null)", "model_type", "missing; expected one of 'llama'"},
    {R"("attention_bias": 1)", "attention_bias", "the number 1"},
    {R"("model_type": 1)", "model_type", "the number 1"},
    {R"("architectures": "LlamaForCausalLM")", "architectures", "the string"},
    {R"("hidden_act": 1)", "hidden_act", "the number 1"},
    {R"("hidden_size": null)", "hidden_size", "missing; expected an integer from 1 to 262144"},
    {R"("hidden_size": 0)", "hidden_size", "the number 0"},
    {R"("hidden_size": -64)", "hidden_size", "the number -64"},
    {R"("hidden_size": 64.0)", "hidden_size", "the number 64.0; expected an integer"},
    {R"("hidden_size": "64")", "hidden_size", "the string '64'"},
    {R"("hidden_size": true)", "hidden_size", "true"},
    {R"("hidden_size": 262145)", "hidden_size", "the number 262145"},
    {R"("hidden_size": 9223372036854775807)", "hidden_size", "9223372036854775807"},
    {R"("hidden_size": 18446744073709551680)", "hidden_size", "the number 1.84"},
    {R"("hidden_size": 63)", "head_dim", "'hidden_size' over 'num_attention_heads'"},
    {R"("hidden_size": 60)", "head_dim", "an even number from 2 to 256"},
    {R"("hidden_size": 4096)", "head_dim", "an even number from 2 to 256"},
    {R"("num_hidden_layers": 0)", "num_hidden_layers", "from 1 to 1024"},
    {R"("num_hidden_layers": 1025)", "num_hidden_layers", "from 1 to 1024"},
    {R"("num_attention_heads": 0)", "num_attention_heads", "from 1 to 1024"},
    {R"("num_key_value_heads": 0)", "num_key_value_heads", "from 1 to 1024"},
    {R"("num_key_value_heads": 3)", "num_key_value_heads", "a divisor of 'num_attention_heads', 4"},
    {R"("num_key_value_heads": 8)", "num_key_value_heads", "a divisor"},
    {R"("head_dim": 0)", "head_dim", "from 2 to 256"},
    {R"("head_dim": 63)", "head_dim", "an even number"},
    {R"("head_dim": 258)", "head_dim", "from 2 to 256"},
    {R"("head_dim": [64])", "head_dim", "an array"},
    {R"("intermediate_size": 0)", "intermediate_size", "from 1 to 1048576"},
    {R"("vocab_size": 0)", "vocab_size", "from 1 to 16777216"},
    {R"("vocab_size": 4294967296)", "vocab_size", "from 1 to 16777216"},
    {R"("max_position_embeddings": 0)", "max_position_embeddings", "from 1 to 134217728"},
    {R"("max_position_embeddings": 1e9)", "max_position_embeddings", "an integer"},
    {R"("rms_norm_eps": 0)", "rms_norm_eps", "a number from 1e-12 to 0.1"},
    {R"("rms_norm_eps": -1e-5)", "rms_norm_eps", "a number from"},
    {R"("rms_norm_eps": "1e-5")", "rms_norm_eps", "the string"},
    {R"("tie_word_embeddings": "false")", "tie_word_embeddings", "the string 'false'"},
    {R"("tie_word_embeddings": 0)", "tie_word_embeddings", "the number 0"},
    {R"("torch_dtype": 16)", "torch_dtype", "the number 16"},
    {R"("dtype": "bfloat16", "torch_dtype": "float16")", "torch_dtype", "the same as in 'dtype'"},
    {R"("rope_theta": 0)", "rope_theta", "a number from 1 to 1e+12"},
    {R"("rope_theta": "10000")", "rope_theta", "the string"},
    {R"("rope_scaling": 2.0)", "rope_scaling", "expected an object"},
    {R"("rope_scaling": {"rope_type": 3})", "rope_scaling.rope_type", "the number 3"},
    {R"("rope_scaling": {"rope_type": "llama3", "type": "default"})", "rope_scaling.type",
     "the same as in 'rope_type'"},
    {R"("rope_theta": 10000.0, "rope_parameters": {"rope_theta": 20000.0})",
     "rope_parameters.rope_theta", "the same as in the outer"},
    {R"("rope_scaling": {"rope_theta": 10000.0}, "rope_parameters": {"rope_theta": 20000.0})",
     "rope_scaling", "the same as in 'rope_parameters'"},
    {R"("rope_parameters": {"partial_rotary_factor": 0.5})",
     "rope_parameters.partial_rotary_factor", "the number 0.5"},
    {R"("eos_token_id": -1)", "eos_token_id", "from 0 to 99"},
    {R"("eos_token_id": 100)", "eos_token_id", "from 0 to 99"},
    {R"("eos_token_id": 4294967297)", "eos_token_id", "from 0 to 99"},
    {R"("eos_token_id": [1, 100])", "eos_token_id", "holds the number 100"},
    {R"("eos_token_id": [[1]])", "eos_token_id", "holds an array"},
    {R"("eos_token_id": {"id": 1})", "eos_token_id", "an object"},
};
INSTANTIATE_TEST_SUITE_P(Table, Refused, testing::ValuesIn(kBadFields));

TEST(ModelConfig, NamesTheLlama3ParameterThatIsMissingOrWrong) {
  const std::vector<std::pair<std::string, std::string>> good = {
      {"factor", "8.0"},
      {"low_freq_factor", "1.0"},
      {"high_freq_factor", "4.0"},
      {"original_max_position_embeddings", "8192"}};
  for (const auto& [bad_name, unused] : good) {
    for (const std::string bad_value : {"null", "0", "-1", "\"8\"", "[8]"}) {
      std::string rope = R"("rope_scaling": {"rope_type": "llama3")";
      for (const auto& [name, value] : good) {
        rope += ", \"" + name + "\": " + (name == bad_name ? bad_value : value);
      }
      EXPECT_THAT(error_of(config_with(rope + "}")),
                  AllOf(HasSubstr("m/config.json: field 'rope_scaling." + bad_name + "'"),
                        HasSubstr("expected")))
          << bad_value;
    }
  }
  EXPECT_THAT(error_of(config_with(R"("rope_scaling": {"rope_type": "llama3", "factor": 8.0,
                  "low_freq_factor": 4.0, "high_freq_factor": 4.0,
                  "original_max_position_embeddings": 8192})")),
              HasSubstr("expected more than 'low_freq_factor'"));
}

TEST(ModelConfig, RefusesMoreEndTokensThanAnyModelHas) {
  std::string ids = "0";
  for (int i = 0; i < 256; ++i) {
    ids += ",0";
  }
  EXPECT_THAT(error_of(config_with("\"eos_token_id\": [" + ids + "]")),
              HasSubstr("expected at most 256 ids"));
}

struct BadText {
  std::string text;
  std::string complaint;
};

TEST(ModelConfig, RefusesTextThatIsNotOneJsonObject) {
  const BadText texts[] = {
      {"", "the text ends early"},
      {"[]", "an array"},
      {"null", "null"},
      {"\xFF\xFE{", "not valid JSON"},
      {R"({"hidden_size": 64, "hidden_size": 64})", "'hidden_size' appears twice"},
      {R"({"a": NaN})", "not valid JSON"},
      {R"({"rope_theta": 1e400})", "not valid JSON"},
      {"{\"a\": " + std::string(1'000'000, '[') + "}", "nested deeper"},
      {"<!DOCTYPE html>", "not valid JSON"},
      {std::string("\0\0\0\0", 4), "byte 0 is zero"},
  };
  for (const BadText& bad : texts) {
    EXPECT_THAT(error_of(bad.text), AllOf(HasSubstr("m/config.json: "), HasSubstr(bad.complaint)));
  }
}

// The largest numbers a config may hold, multiplied as a planner does, in bytes.
TEST(ModelConfig, ItsRangesKeepProductsInsideInt64) {
  const ModelConfig largest =
      parsed(R"("hidden_size": 262144, "num_hidden_layers": 1024, "num_attention_heads": 1024,
                "num_key_value_heads": 1024, "head_dim": 256, "intermediate_size": 1048576,
                "vocab_size": 16777216, "max_position_embeddings": 134217728)");
  std::int64_t kv_bytes = 0;
  EXPECT_FALSE(__builtin_mul_overflow(largest.max_positions * 8,
                                      largest.num_layers * largest.kv_dim(), &kv_bytes));
  std::int64_t ffn_bytes = 0;
  EXPECT_FALSE(
      __builtin_mul_overflow(largest.max_positions * 8, largest.ffn_dim * 1024, &ffn_bytes));
}

TEST(ModelConfig, ReadsAFolderAndNamesTheFileThatIsMissing) {
  const std::string folder = testing::TempDir() + "tidekv_config_" + std::to_string(::getpid());
  std::filesystem::create_directories(folder);
  const auto missing = read_model_config(folder);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr(folder + "/config.json"));

  std::ofstream(folder + "/config.json") << config_with("\"eos_token_id\": 3");
  EXPECT_THAT(read_model_config(folder).value().eos_token_ids, ElementsAre(3));
  std::ofstream(folder + "/generation_config.json") << R"({"eos_token_id": [4]})";
  EXPECT_THAT(read_model_config(folder).value().eos_token_ids, ElementsAre(3, 4));
  std::ofstream(folder + "/generation_config.json") << "";
  EXPECT_THAT(read_model_config(folder).error().message,
              HasSubstr(folder + "/generation_config.json: empty; expected a JSON object"));
  std::filesystem::remove_all(folder);
}

TEST(ModelConfig, AGenerationConfigThatCannotBeReadIsNoAbsentOne) {
  const std::string folder = testing::TempDir() + "tidekv_config_" + std::to_string(::getpid());
  const std::string generation = folder + "/generation_config.json";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/config.json") << config_with("");
  ASSERT_TRUE(read_model_config(folder).ok());

  std::filesystem::create_directory(generation);
  EXPECT_THAT(read_model_config(folder).error().message,
              HasSubstr(generation + ": not a regular file"));
  std::filesystem::remove(generation);
  ASSERT_EQ(::mkfifo(generation.c_str(), 0600), 0);
  EXPECT_THAT(read_model_config(folder).error().message,
              HasSubstr(generation + ": not a regular file"));
  std::filesystem::remove(generation);
  std::filesystem::create_symlink(folder + "/none", generation);
  EXPECT_THAT(read_model_config(folder).error().message,
              HasSubstr(generation + ": cannot open: it is a link that leads nowhere"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace tidekv
