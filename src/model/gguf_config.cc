#include "model/gguf_config.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <string_view>

#include "base/field_reader.h"
#include "io/gguf_metadata.h"
#include "model/config_limits.h"

namespace tidekv {
namespace {

struct Family {
  std::string_view architecture;
  RopePairs pairs;  // the conversion reorders the query and key rows of some
};
constexpr Family kFamilies[] = {
    {"llama", RopePairs::kAdjacent},  // Mistral too
    {"qwen2", RopePairs::kHalves},
    {"qwen3", RopePairs::kHalves},
};

// Keys, without "<architecture>.", that are read below or change nothing here.
constexpr std::string_view kKnownKeys[] = {
    "block_count",
    "context_length",
    "embedding_length",
    "feed_forward_length",
    "tensor_data_layout",
    "vocab_size",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.value_length",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "expert_count",
    "expert_used_count",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.type",
    "rope.scaling.factor",
    "rope.scaling.attn_factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
};

// The fields of one architecture, and the tensors beside them.
class Metadata {
 public:
  Metadata(const TensorFile& file, std::string architecture)
      : file_(&file), fields_(file.metadata()->reader()), prefix_(std::move(architecture) + ".") {}

  std::string key(std::string_view name) const { return prefix_ + std::string(name); }
  bool has(std::string_view name) const { return fields_.find(key(name)) != nullptr; }
  Result<std::int64_t> integer(std::string_view name, IntRange range) const {
    return fields_.integer(key(name), range);
  }
  Result<std::int64_t> integer_or(std::string_view name, IntRange range,
                                  std::int64_t fallback) const {
    return fields_.integer_or(key(name), range, fallback);
  }
  Result<double> number(std::string_view name, NumberRange range) const {
    return fields_.number(key(name), range);
  }
  Result<double> number_or(std::string_view name, NumberRange range, double fallback) const {
    return fields_.number_or(key(name), range, fallback);
  }
  Result<std::string> string(std::string_view name, std::string_view expected) const {
    return fields_.string(key(name), expected);
  }
  Error error(ErrorCode code, std::string_view name, std::string_view expected) const {
    return fields_.error(code, key(name), expected);
  }
  bool has_tensor(std::string_view name) const {
    return file_->tensors().contains(name) || file_->other_dtypes().contains(name);
  }
  const TensorFile& file() const { return *file_; }
  const FieldReader& fields() const { return fields_; }
  const std::string& prefix() const { return prefix_; }

 private:
  const TensorFile* file_;
  FieldReader fields_;
  std::string prefix_;
};

Result<const Family*> find_family(const FieldReader& fields) {
  std::string expected = "one of";
  for (const Family& family : kFamilies) {
    expected += (&family == kFamilies ? " '" : ", '") + std::string(family.architecture) + "'";
  }
  TIDEKV_ASSIGN(const std::string name, fields.string("general.architecture", expected));
  const auto* family = std::ranges::find(kFamilies, name, &Family::architecture);
  if (family == std::end(kFamilies)) {
    return fields.error(ErrorCode::kUnsupported, "general.architecture", expected);
  }
  return family;
}

// Old files of llama models say that their query and key rows are reordered, as they all are.
Status check_layout(const Metadata& metadata) {
  constexpr std::string_view kReordered = "Meta AI original pth";
  constexpr std::string_view kKey = "tensor_data_layout";
  if (!metadata.has(kKey)) {
    return Ok{};
  }
  const std::string expected = metadata.prefix() == "llama."
                                   ? "'" + std::string(kReordered) + "', or no such key"
                                   : "no such key";
  TIDEKV_ASSIGN(const std::string layout, metadata.string(kKey, expected));
  if (layout != kReordered || metadata.prefix() != "llama.") {
    return metadata.error(ErrorCode::kUnsupported, kKey, expected);
  }
  return Ok{};
}

Status check_supported(const Metadata& metadata) {
  for (const JsonMember& member : metadata.fields().members()) {
    const std::string_view key = member.key;
    if (key.starts_with(metadata.prefix()) &&
        std::ranges::find(kKnownKeys, key.substr(metadata.prefix().size())) ==
            std::end(kKnownKeys)) {
      return metadata.fields().error(ErrorCode::kUnsupported, key,
                                     "no such key: what it asks for is not supported");
    }
  }
  struct Switch {
    std::string_view key;
    std::string_view expected;
  };
  constexpr Switch kOff[] = {
      {"attention.sliding_window", "0 or no such key: a sliding window is not supported"},
      {"expert_count", "0 or no such key: experts are not supported"},
  };
  for (const Switch& off : kOff) {
    TIDEKV_ASSIGN(const std::int64_t value, metadata.integer_or(off.key, {0, INT64_MAX}, 0));
    if (value != 0) {
      return metadata.error(ErrorCode::kUnsupported, off.key, off.expected);
    }
  }
  TIDEKV_TRY(metadata.number_or("rope.scaling.attn_factor", {1.0, 1.0}, 1.0));
  return check_layout(metadata);
}

Status read_attention_shape(const Metadata& metadata, ModelConfig& config) {
  TIDEKV_ASSIGN(config.num_q_heads, metadata.integer("attention.head_count", limits::kHeads));
  TIDEKV_ASSIGN(config.num_kv_heads,
                metadata.integer_or("attention.head_count_kv", limits::kHeads, config.num_q_heads));
  if (config.num_q_heads % config.num_kv_heads != 0) {
    return metadata.error(ErrorCode::kBadFile, "attention.head_count_kv",
                          "a divisor of '" + metadata.key("attention.head_count") + "', " +
                              std::to_string(config.num_q_heads));
  }
  TIDEKV_ASSIGN(config.head_dim, metadata.integer_or("attention.key_length", limits::kHeadDim,
                                                     config.hidden_dim / config.num_q_heads));
  if (config.head_dim % 2 != 0 || config.head_dim < limits::kHeadDim.min ||
      config.head_dim > limits::kHeadDim.max) {
    return metadata.error(ErrorCode::kBadFile, "attention.key_length",
                          "it, or '" + metadata.key("embedding_length") +
                              "' over the number of heads, to be an even number from 2 to " +
                              std::to_string(limits::kHeadDim.max));
  }
  for (const std::string_view key : {"attention.value_length", "rope.dimension_count"}) {
    TIDEKV_ASSIGN(const std::int64_t value,
                  metadata.integer_or(key, {0, INT64_MAX}, config.head_dim));
    if (value != config.head_dim) {
      return metadata.error(
          ErrorCode::kUnsupported, key,
          "the width of a key, " + std::to_string(config.head_dim) + ": no other is supported");
    }
  }
  return Ok{};
}

constexpr float kLeastDivisor = 1e-6F;
constexpr float kLargestDivisor = 1e6F;

// The converted form of Llama 3.1's rule: a divisor for every frequency.
Status read_rope_divisors(const Metadata& metadata, ModelConfig& config) {
  constexpr std::string_view kName = "rope_freqs.weight";
  TIDEKV_ASSIGN(const HostView view, metadata.file().matrix(kName));
  const std::string tensor = metadata.file().path() + ": tensor 'rope_freqs.weight'";
  if (view.dtype != DType::kF32 || view.rows != 1 || view.cols != config.head_dim / 2) {
    return Error{ErrorCode::kBadFile,
                 tensor + " is of type " + std::string(name_of(view.dtype)) + " and has " +
                     std::to_string(view.rows * view.cols) + " elements; expected " +
                     std::to_string(config.head_dim / 2) + " of f32, half the width of a head"};
  }
  config.rope.type = RopeType::kDivisors;
  config.rope.divisors.resize(static_cast<std::size_t>(view.cols));
  std::memcpy(config.rope.divisors.data(), view.data, static_cast<std::size_t>(view.num_bytes()));
  for (const float divisor : config.rope.divisors) {
    if (!(divisor >= kLeastDivisor && divisor <= kLargestDivisor)) {  // NaN too
      return Error{ErrorCode::kBadFile, tensor +
                                            " holds a number that is not from 1e-6 to 1e6; "
                                            "expected divisors of frequencies"};
    }
  }
  return Ok{};
}

Status read_rope(const Metadata& metadata, ModelConfig& config) {
  constexpr std::string_view kTypes = "'none' or 'linear'";
  TIDEKV_ASSIGN(config.rope.theta,
                metadata.number_or("rope.freq_base", limits::kTheta, config.rope.theta));
  std::string type = "none";
  if (metadata.has("rope.scaling.type")) {
    TIDEKV_ASSIGN(type, metadata.string("rope.scaling.type", kTypes));
  }
  const bool old_linear = metadata.has("rope.scale_linear");
  const std::string_view factor_key = old_linear ? "rope.scale_linear" : "rope.scaling.factor";
  if (type == "linear" || (old_linear && type == "none")) {
    config.rope.type = RopeType::kLinear;
    TIDEKV_ASSIGN(config.rope.factor, metadata.number(factor_key, limits::kFactor));
  } else if (type != "none") {
    return metadata.error(ErrorCode::kUnsupported, "rope.scaling.type", kTypes);
  } else if (metadata.has(factor_key)) {
    TIDEKV_TRY(metadata.number(factor_key, {1.0, 1.0}));
  }
  if (!metadata.has_tensor("rope_freqs.weight")) {
    return Ok{};
  }
  if (config.rope.type != RopeType::kDefault) {
    return metadata.error(ErrorCode::kUnsupported, "rope.scaling.type",
                          "'none' beside a tensor rope_freqs.weight");
  }
  return read_rope_divisors(metadata, config);
}

Status read_vocab_size(const Metadata& metadata, ModelConfig& config) {
  TIDEKV_ASSIGN(const HostView embedding, metadata.file().matrix("token_embd.weight"));
  TIDEKV_ASSIGN(config.vocab_size,
                metadata.integer_or("vocab_size", limits::kVocab, embedding.rows));
  if (config.vocab_size > limits::kVocab.max) {
    return Error{ErrorCode::kBadFile, metadata.file().path() + ": tensor 'token_embd.weight' has " +
                                          std::to_string(embedding.rows) +
                                          " rows; expected at most " +
                                          std::to_string(limits::kVocab.max)};
  }
  return Ok{};
}

// The end of the text, of a turn, of a message: each ends an answer.
Status read_end_tokens(const Metadata& metadata, ModelConfig& config) {
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    if (metadata.fields().find(key) == nullptr) {
      continue;
    }
    TIDEKV_ASSIGN(const std::int64_t id,
                  metadata.fields().integer(key, {0, config.vocab_size - 1}));
    const auto token = static_cast<std::int32_t>(id);
    if (std::ranges::find(config.eos_token_ids, token) == config.eos_token_ids.end()) {
      config.eos_token_ids.push_back(token);
    }
  }
  return Ok{};
}

// The type that most bytes of the file are of.
DType main_type(const TensorFile& file) {
  std::map<DType, std::int64_t> bytes;
  for (const auto& [name, info] : file.tensors()) {
    bytes[info.dtype] += info.num_bytes;
  }
  const auto most =
      std::ranges::max_element(bytes, {}, [](const auto& item) { return item.second; });
  return most == bytes.end() ? DType::kF32 : most->first;
}

}  // namespace

Result<ModelConfig> read_gguf_config(const TensorFile& file) {
  TIDEKV_ASSIGN(const Family* family, find_family(file.metadata()->reader()));
  ModelConfig config;
  config.architecture = family->architecture;
  const Metadata metadata(file, config.architecture);
  TIDEKV_TRY(check_supported(metadata));
  TIDEKV_ASSIGN(config.num_layers, metadata.integer("block_count", limits::kLayers));
  TIDEKV_ASSIGN(config.hidden_dim, metadata.integer("embedding_length", limits::kHiddenDim));
  TIDEKV_ASSIGN(config.ffn_dim, metadata.integer("feed_forward_length", limits::kFfnDim));
  TIDEKV_TRY(read_attention_shape(metadata, config));
  TIDEKV_ASSIGN(config.max_positions, metadata.integer("context_length", limits::kPositions));
  TIDEKV_ASSIGN(config.rms_norm_eps,
                metadata.number("attention.layer_norm_rms_epsilon", limits::kNormEps));
  TIDEKV_TRY(read_vocab_size(metadata, config));
  config.tied_embeddings = !metadata.has_tensor("output.weight");
  config.qkv_bias = metadata.has_tensor("blk.0.attn_q.bias");
  config.output_bias = metadata.has_tensor("blk.0.attn_output.bias");
  config.mlp_bias = metadata.has_tensor("blk.0.ffn_gate.bias");
  config.qk_norm = metadata.has_tensor("blk.0.attn_q_norm.weight");
  config.rope.pairs = family->pairs;
  TIDEKV_TRY(read_rope(metadata, config));
  TIDEKV_TRY(read_end_tokens(metadata, config));
  config.dtype = main_type(file);
  return config;
}

}  // namespace tidekv
