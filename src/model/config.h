// All hyperparameters of a decoder-only transformer, on one page.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"
#include "tensor/rope_pairs.h"
#include "tidekv/result.h"

namespace tidekv {

enum class RopeType : std::uint8_t { kDefault, kLinear, kLlama3, kDivisors };

constexpr std::string_view name_of(RopeType type) {
  constexpr std::string_view kNames[] = {"default", "linear", "llama3", "divisors"};
  return kNames[static_cast<std::size_t>(type)];
}

// Rotary position embedding: inverse frequency i is theta^(-2i / head_dim), i < head_dim / 2.
// kLinear divides all by `factor`; kLlama3 stretches the low ones (Llama 3.1's rule, four
// parameters below); kDivisors divides each by a number the file gives (GGUF's rope_freqs:
// Llama 3.1's rule, worked out).
struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double factor = 1.0;           // kLinear and kLlama3
  double low_freq_factor = 1.0;  // kLlama3 only, as the next two
  double high_freq_factor = 4.0;
  std::int64_t original_max_positions = 8192;
  std::vector<float> divisors = {};      // [head_dim / 2], kDivisors only
  RopePairs pairs = RopePairs::kHalves;  // order of query and key rows in the file

  bool operator==(const RopeConfig&) const = default;
};

struct ModelConfig {
  std::string architecture;       // "llama", "mistral", "qwen2" or "qwen3"
  std::int64_t num_layers = 0;    // N
  std::int64_t hidden_dim = 0;    // d_model
  std::int64_t ffn_dim = 0;       // d_ff
  std::int64_t num_q_heads = 0;   // H_q, a multiple of num_kv_heads
  std::int64_t num_kv_heads = 0;  // H_kv; query head h reads KV head h / (H_q / H_kv)
  std::int64_t head_dim = 0;      // D, even; num_q_heads * head_dim may differ from hidden_dim
  std::int64_t vocab_size = 0;
  std::int64_t max_positions = 0;  // the context the model was made for
  double rms_norm_eps = 1e-5;
  bool tied_embeddings = false;  // the output matrix is the embedding table
  bool qkv_bias = false;         // biases on the q, k and v projections
  bool output_bias = false;      // on the attention's output projection
  bool mlp_bias = false;         // on gate, up and down
  bool qk_norm = false;          // RMSNorm of every query and key head before RoPE
  RopeConfig rope;
  std::optional<DType> dtype;               // of most weights, where the config names it
  std::vector<std::int32_t> eos_token_ids;  // any of them ends generation; may be empty

  std::int64_t q_dim() const { return num_q_heads * head_dim; }
  std::int64_t kv_dim() const { return num_kv_heads * head_dim; }
  std::int64_t group_size() const { return num_q_heads / num_kv_heads; }
};

// Reads `folder`/config.json, and generation_config.json beside it for end tokens if there is one,
// as Transformers 4 and 5 write them. Anything not supported is refused by name.
Result<ModelConfig> read_model_config(const std::string& folder);

// Parses the texts themselves; `generation_config_json` may be empty. `file` names the first in
// errors.
Result<ModelConfig> parse_model_config(const std::string& config_json,
                                       const std::string& generation_config_json,
                                       const std::string& file);

// One of the published shapes by name (llama-3.1-8b, mistral-7b-v0.2, llama-3.2-1b, qwen2.5-7b,
// qwen3-8b, smollm2-135m): enough to plan memory without weights. The error lists the names.
Result<ModelConfig> published_shape(const std::string& name);
std::vector<std::string> published_shape_names();

// Inverse frequencies [head_dim / 2] in FP32, rounded as Transformers rounds them.
std::vector<float> rope_inverse_frequencies(const RopeConfig& rope, std::int64_t head_dim);

}  // namespace tidekv
