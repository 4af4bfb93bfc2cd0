#include "model/gguf_config.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <string>

#include "gguf/gguf_writer.h"

namespace tidekv {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kVocab = 8;
constexpr std::int64_t kHidden = 32;

// A field for a writer: replaces the one of the same key that the valid file has.
struct Field {
  std::string key;
  std::function<void(gguf::GgufWriter&, const std::string& key)> write;
};
Field whole(const std::string& key, std::uint32_t value) {
  return {key, [value](auto& writer, const auto& name) { writer.uint32(name, value); }};
}
Field real(const std::string& key, float value) {
  return {key, [value](auto& writer, const auto& name) { writer.float32(name, value); }};
}
Field text(const std::string& key, const std::string& value) {
  return {key, [value](auto& writer, const auto& name) { writer.string(name, value); }};
}
Field without(const std::string& key) {
  return {key, [](auto&, const auto&) {}};
}

struct Tensor {
  std::string name;
  std::vector<float> values;
};

// The bytes of a file that is right but for `changes`, of one layer as far as its config goes.
std::string file_with(const std::string& architecture, const std::vector<Field>& changes,
                      const std::vector<Tensor>& tensors) {
  const std::string a = architecture + ".";
  std::vector<Field> fields = {
      text("general.architecture", architecture),
      whole(a + "block_count", 1),
      whole(a + "context_length", 512),
      whole(a + "embedding_length", kHidden),
      whole(a + "feed_forward_length", 48),
      whole(a + "attention.head_count", 4),
      whole(a + "attention.head_count_kv", 2),
      real(a + "attention.layer_norm_rms_epsilon", 1e-5F),
      real(a + "rope.freq_base", 20000.0F),
      whole("tokenizer.ggml.eos_token_id", 3),
  };
  for (const Field& change : changes) {
    std::erase_if(fields, [&](const Field& field) { return field.key == change.key; });
    fields.push_back(change);
  }
  gguf::GgufWriter writer;
  for (const Field& field : fields) {
    field.write(writer, field.key);
  }
  writer.tensor("token_embd.weight", {kVocab, kHidden}, DType::kF16,
                std::string(kVocab * kHidden * 2, '\0'));
  for (const Tensor& tensor : tensors) {
    writer.tensor(tensor.name, {static_cast<std::int64_t>(tensor.values.size())}, DType::kF32,
                  std::string(reinterpret_cast<const char*>(tensor.values.data()),
                              tensor.values.size() * sizeof(float)));
  }
  return writer.file();
}

Result<ModelConfig> read(const std::string& bytes) {
  const std::string path =
      ::testing::TempDir() + "gguf_config_test_" + std::to_string(::getpid()) + ".gguf";
  std::FILE* file = std::fopen(path.c_str(), "wb");
  EXPECT_NE(file, nullptr) << path;
  std::fwrite(bytes.data(), 1, bytes.size(), file);
  std::fclose(file);
  const Result<TensorFile> tensors = TensorFile::open(path);
  std::remove(path.c_str());
  EXPECT_TRUE(tensors.ok()) << tensors.error().message;
  return tensors.ok() ? read_gguf_config(tensors.value()) : tensors.error();
}

ModelConfig config_of(const std::vector<Field>& changes, const std::vector<Tensor>& tensors = {}) {
  const auto config = read(file_with("llama", changes, tensors));
  EXPECT_TRUE(config.ok()) << config.error().message;
  return config.ok() ? config.value() : ModelConfig{};
}

std::string error_of(const std::vector<Field>& changes, const std::vector<Tensor>& tensors = {}) {
  const auto config = read(file_with("llama", changes, tensors));
  return config.ok() ? "read" : config.error().message;
}

TEST(GgufConfig, ReadsTheKeysOfItsArchitecture) {
  const ModelConfig config = config_of({});
  EXPECT_EQ(config.architecture, "llama");
  EXPECT_EQ(config.num_layers, 1);
  EXPECT_EQ(config.hidden_dim, kHidden);
  EXPECT_EQ(config.ffn_dim, 48);
  EXPECT_EQ(config.num_q_heads, 4);
  EXPECT_EQ(config.num_kv_heads, 2);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.vocab_size, kVocab);
  EXPECT_EQ(config.max_positions, 512);
  EXPECT_EQ(static_cast<float>(config.rms_norm_eps), 1e-5F);
  EXPECT_EQ(config.rope, (RopeConfig{.theta = 20000.0, .pairs = RopePairs::kAdjacent}));
  EXPECT_THAT(config.eos_token_ids, ElementsAre(3));
  EXPECT_EQ(config.dtype, DType::kF16);
}

TEST(GgufConfig, TakesWhatTheFormatTakesForAbsentKeys) {
  const ModelConfig config =
      config_of({without("llama.attention.head_count_kv"), without("llama.rope.freq_base"),
                 without("tokenizer.ggml.eos_token_id")});
  EXPECT_EQ(config.num_kv_heads, 4);
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_THAT(config.eos_token_ids, IsEmpty());
}

TEST(GgufConfig, FindsInTheTensorsWhatNoKeySays) {
  EXPECT_TRUE(config_of({}).tied_embeddings);
  EXPECT_FALSE(config_of({}).qkv_bias || config_of({}).output_bias || config_of({}).mlp_bias ||
               config_of({}).qk_norm);
  const std::vector<float> row(static_cast<std::size_t>(kHidden));
  const ModelConfig config = config_of({}, {{"output.weight", row},
                                            {"blk.0.attn_q.bias", row},
                                            {"blk.0.attn_output.bias", row},
                                            {"blk.0.ffn_gate.bias", row},
                                            {"blk.0.attn_q_norm.weight", row}});
  EXPECT_FALSE(config.tied_embeddings);
  EXPECT_TRUE(config.qkv_bias && config.output_bias && config.mlp_bias && config.qk_norm);
}

TEST(GgufConfig, ReordersRotaryPairsOfLlamaOnly) {
  for (const char* architecture : {"qwen2", "qwen3"}) {
    const auto config = read(file_with(architecture, {}, {}));
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config.value().rope.pairs, RopePairs::kHalves) << architecture;
  }
}

TEST(GgufConfig, ReadsLinearRopeInBothSpellings) {
  for (const auto& fields : {std::vector<Field>{text("llama.rope.scaling.type", "linear"),
                                                real("llama.rope.scaling.factor", 4.0F)},
                             std::vector<Field>{real("llama.rope.scale_linear", 4.0F)}}) {
    const RopeConfig rope = config_of(fields).rope;
    EXPECT_EQ(rope.type, RopeType::kLinear);
    EXPECT_EQ(rope.factor, 4.0);
  }
}

TEST(GgufConfig, TakesRopeDivisorsFromTheirTensor) {
  const RopeConfig rope = config_of({}, {{"rope_freqs.weight", {1.0F, 1.0F, 2.5F, 8.0F}}}).rope;
  EXPECT_EQ(rope.type, RopeType::kDivisors);
  EXPECT_THAT(rope.divisors, ElementsAre(1.0F, 1.0F, 2.5F, 8.0F));
  RopeConfig plain = rope;
  plain.type = RopeType::kDefault;
  EXPECT_EQ(rope_inverse_frequencies(rope, 8)[3], rope_inverse_frequencies(plain, 8)[3] / 8.0F);
}

TEST(GgufConfig, EndsGenerationAtTheEndsOfTextTurnAndMessage) {
  EXPECT_THAT(
      config_of({whole("tokenizer.ggml.eot_token_id", 5), whole("tokenizer.ggml.eom_token_id", 3)})
          .eos_token_ids,
      ElementsAre(3, 5));
}

struct BadFile {
  Field change;
  std::string complaint;
};

class GgufConfigTable : public ::testing::TestWithParam<BadFile> {};

TEST_P(GgufConfigTable, NamesTheFileTheKeyAndWhatWouldBeRight) {
  EXPECT_THAT(error_of({GetParam().change}),
              AllOf(HasSubstr(".gguf: field '" + GetParam().change.key + "'"),
                    HasSubstr(GetParam().complaint), HasSubstr("expected")));
}

const BadFile kBadFiles[] = {
    {text("general.architecture", "gemma2"), "'gemma2'; expected one of 'llama', 'qwen2', 'qwen3'"},
    {without("general.architecture"), "missing"},
    {whole("general.architecture", 1), "the number 1"},
    {without("llama.block_count"), "missing"},
    {whole("llama.block_count", 0), "from 1 to 1024"},
    {whole("llama.block_count", 4000000000U), "from 1 to 1024"},
    {text("llama.block_count", "1"), "the string '1'"},
    {without("llama.embedding_length"), "missing"},
    {whole("llama.feed_forward_length", 0), "from 1 to"},
    {without("llama.context_length"), "missing"},
    {whole("llama.attention.head_count", 0), "from 1 to 1024"},
    {whole("llama.attention.head_count_kv", 3), "a divisor of 'llama.attention.head_count', 4"},
    {whole("llama.attention.key_length", 7), "an even number"},
    {whole("llama.attention.value_length", 16), "the width of a key, 8"},
    {whole("llama.rope.dimension_count", 4), "the width of a key, 8"},
    {without("llama.attention.layer_norm_rms_epsilon"), "missing"},
    {real("llama.attention.layer_norm_rms_epsilon", 0.0F), "a number from"},
    {real("llama.rope.freq_base", -1.0F), "a number from"},
    {real("llama.rope.freq_base", __builtin_nanf("")), "a number from"},
    {text("llama.rope.scaling.type", "yarn"), "'yarn'; expected 'none' or 'linear'"},
    {real("llama.rope.scaling.factor", 2.0F), "from 1 to 1"},
    {whole("llama.attention.sliding_window", 4096), "a sliding window is not supported"},
    {whole("llama.expert_count", 8), "experts are not supported"},
    {real("llama.attention.scale", 0.1F), "no such key"},
    {real("llama.logit_scale", 2.0F), "no such key"},
    {real("llama.rope.scaling.attn_factor", 1.5F), "from 1 to 1"},
    {text("llama.tensor_data_layout", "reference"), "expected 'Meta AI original pth', or no such"},
    {whole("llama.tensor_data_layout", 1), "expected 'Meta AI original pth', or no such"},
    {whole("llama.vocab_size", 0), "from 1 to 16777216"},
    {whole("tokenizer.ggml.eos_token_id", 8), "from 0 to 7"},
};
INSTANTIATE_TEST_SUITE_P(Files, GgufConfigTable, ::testing::ValuesIn(kBadFiles));

TEST(GgufConfig, TakesKeysThatSayWhatHoldsAnyway) {
  EXPECT_EQ(error_of({text("llama.tensor_data_layout", "Meta AI original pth"),
                      real("llama.rope.scaling.attn_factor", 1.0F)}),
            error_of({}));
}

TEST(GgufConfig, NeedsTheFactorOfLinearRope) {
  EXPECT_THAT(error_of({text("llama.rope.scaling.type", "linear")}),
              HasSubstr("field 'llama.rope.scaling.factor' is missing; expected a number from 1"));
}

TEST(GgufConfig, RefusesRopeDivisorsThatFitNoHead) {
  EXPECT_THAT(error_of({}, {{"rope_freqs.weight", {1.0F, 1.0F}}}),
              AllOf(HasSubstr("tensor 'rope_freqs.weight'"), HasSubstr("expected 4 of f32")));
  EXPECT_THAT(error_of({}, {{"rope_freqs.weight", {1.0F, 0.0F, 1.0F, 1.0F}}}),
              HasSubstr("a number that is not from 1e-6 to 1e6"));
  for (const float divisor : {1e-45F, -1.0F, 1e30F, __builtin_nanf("")}) {
    EXPECT_THAT(error_of({}, {{"rope_freqs.weight", {1.0F, divisor, 1.0F, 1.0F}}}),
                HasSubstr("tensor 'rope_freqs.weight' holds a number"))
        << divisor;
  }
  EXPECT_THAT(
      error_of({text("llama.rope.scaling.type", "linear"), real("llama.rope.scaling.factor", 2.0F)},
               {{"rope_freqs.weight", {1.0F, 1.0F, 1.0F, 1.0F}}}),
      HasSubstr("'none' beside a tensor rope_freqs.weight"));
}

TEST(GgufConfig, NeedsTheEmbeddingToKnowTheVocabulary) {
  const std::string bytes = gguf::GgufWriter()
                                .string("general.architecture", "llama")
                                .uint32("llama.block_count", 1)
                                .uint32("llama.context_length", 8)
                                .uint32("llama.embedding_length", 8)
                                .uint32("llama.feed_forward_length", 8)
                                .uint32("llama.attention.head_count", 1)
                                .float32("llama.attention.layer_norm_rms_epsilon", 1e-5F)
                                .file();
  const auto config = read(bytes);
  ASSERT_FALSE(config.ok());
  EXPECT_THAT(config.error().message, HasSubstr("tensor 'token_embd.weight' is not in it"));
}

}  // namespace
}  // namespace tidekv
