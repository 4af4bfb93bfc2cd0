#include <string_view>

#include "model/config.h"

namespace tidekv {
namespace {

// Of Llama 3.1 and later: the factor; 1 for the others.
RopeConfig rope_of(double theta, double llama3_factor) {
  RopeConfig rope;
  rope.theta = theta;
  if (llama3_factor != 1.0) {
    rope.type = RopeType::kLlama3;
    rope.factor = llama3_factor;
  }
  return rope;
}

struct Shape {
  std::string_view name;
  std::string_view architecture;
  std::int64_t num_layers;
  std::int64_t hidden_dim;
  std::int64_t ffn_dim;
  std::int64_t num_q_heads;
  std::int64_t num_kv_heads;
  std::int64_t head_dim;
  std::int64_t vocab_size;
  std::int64_t max_positions;
  double rms_norm_eps;
  bool tied_embeddings;
  double rope_theta;
  double llama3_factor;
};

// As in the config.json each model was published with.
constexpr Shape kShapes[] = {
    {"llama-3.1-8b", "llama", 32, 4096, 14336, 32, 8, 128, 128256, 131072, 1e-5, false, 500000.0,
     8.0},
    {"mistral-7b-v0.2", "mistral", 32, 4096, 14336, 32, 8, 128, 32000, 32768, 1e-5, false, 1e6,
     1.0},
    {"llama-3.2-1b", "llama", 16, 2048, 8192, 32, 8, 64, 128256, 131072, 1e-5, true, 500000.0,
     32.0},
    {"qwen2.5-7b", "qwen2", 28, 3584, 18944, 28, 4, 128, 152064, 32768, 1e-6, false, 1e6, 1.0},
    {"qwen3-8b", "qwen3", 36, 4096, 12288, 32, 8, 128, 151936, 40960, 1e-6, false, 1e6, 1.0},
    {"smollm2-135m", "llama", 30, 576, 1536, 9, 3, 64, 49152, 8192, 1e-5, true, 1e5, 1.0},
};

}  // namespace

Result<ModelConfig> published_shape(const std::string& name) {
  std::string names;
  for (const Shape& shape : kShapes) {
    if (shape.name == name) {
      return ModelConfig{.architecture = std::string(shape.architecture),
                         .num_layers = shape.num_layers,
                         .hidden_dim = shape.hidden_dim,
                         .ffn_dim = shape.ffn_dim,
                         .num_q_heads = shape.num_q_heads,
                         .num_kv_heads = shape.num_kv_heads,
                         .head_dim = shape.head_dim,
                         .vocab_size = shape.vocab_size,
                         .max_positions = shape.max_positions,
                         .rms_norm_eps = shape.rms_norm_eps,
                         .tied_embeddings = shape.tied_embeddings,
                         .qkv_bias = shape.architecture == "qwen2",
                         .qk_norm = shape.architecture == "qwen3",
                         .rope = rope_of(shape.rope_theta, shape.llama3_factor),
                         .dtype = DType::kBF16,
                         .eos_token_ids = {}};
    }
    names += (names.empty() ? "" : ", ") + std::string(shape.name);
  }
  return Error{ErrorCode::kNotFound, "no published shape '" + name + "'; expected one of " + names};
}

std::vector<std::string> published_shape_names() {
  std::vector<std::string> names;
  for (const Shape& shape : kShapes) {
    names.emplace_back(shape.name);
  }
  return names;
}

}  // namespace tidekv
