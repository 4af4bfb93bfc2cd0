#include "model/config.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/field_reader.h"
#include "base/file.h"
#include "base/json_value.h"
#include "model/config_limits.h"
#include "model/config_rope.h"

namespace tidekv {
namespace {

using namespace limits;

constexpr std::int64_t kMaxConfigBytes = 4 << 20;
constexpr JsonLimits kLimits = {.max_depth = 32, .max_values = 100'000};

constexpr std::size_t kMaxEosIds = 256;

constexpr double kDefaultNormEps = 1e-6;

// One architecture as Transformers has it, with what it takes where a field is absent.
struct Family {
  std::string_view model_type;
  std::string_view class_name;
  std::int64_t num_kv_heads;  // 0: as many as query heads
  std::int64_t head_dim;      // 0: hidden_size / num_attention_heads
  std::int64_t max_positions;
  bool qkv_bias;     // always
  bool bias_fields;  // attention_bias: on q, k, v and o; mlp_bias
  bool qk_norm;
};
constexpr Family kFamilies[] = {
    {"llama", "LlamaForCausalLM", 0, 0, 2048, false, true, false},
    {"mistral", "MistralForCausalLM", 8, 0, 131072, false, false, false},
    {"qwen2", "Qwen2ForCausalLM", 32, 0, 32768, true, false, false},
    {"qwen3", "Qwen3ForCausalLM", 32, 128, 32768, false, true, true},
};

enum class Harmless : std::uint8_t { kNothing, kFalse, kOne, kEmpty };

struct Restriction {
  std::string_view field;
  Harmless harmless;  // the one value that, beside null, changes nothing
};

// Fields of these, or that relatives put under their names, which change the computation.
constexpr Restriction kRestrictions[] = {
    {"qkv_bias", Harmless::kFalse},
    {"use_bias", Harmless::kFalse},
    {"use_sliding_window", Harmless::kFalse},
    {"quantization_config", Harmless::kNothing},
    {"compression_config", Harmless::kNothing},
    {"partial_rotary_factor", Harmless::kOne},
    {"rope_interleaved", Harmless::kFalse},
    {"no_rope_layers", Harmless::kEmpty},
    {"is_encoder_decoder", Harmless::kFalse},
    {"add_cross_attention", Harmless::kFalse},
    {"pruned_heads", Harmless::kEmpty},
    {"num_experts", Harmless::kNothing},
    {"num_local_experts", Harmless::kNothing},
    {"qk_norm", Harmless::kFalse},
    {"use_qk_norm", Harmless::kFalse},
    {"clip_qkv", Harmless::kNothing},
    {"attention_multiplier", Harmless::kNothing},
    {"query_pre_attn_scalar", Harmless::kNothing},
    {"embedding_multiplier", Harmless::kOne},
    {"residual_multiplier", Harmless::kOne},
    {"logits_scaling", Harmless::kOne},
    {"attn_logit_softcapping", Harmless::kNothing},
    {"final_logit_softcapping", Harmless::kNothing},
    {"text_config", Harmless::kNothing},
    {"auto_map", Harmless::kNothing},
};

bool is_harmless(const JsonValue& value, Harmless harmless) {
  switch (harmless) {
    case Harmless::kNothing:
      return false;
    case Harmless::kFalse: {
      const auto* flag = std::get_if<bool>(&value.data);
      return flag != nullptr && !*flag;
    }
    case Harmless::kOne: {
      const auto* whole = std::get_if<std::int64_t>(&value.data);
      const auto* real = std::get_if<double>(&value.data);
      return (whole != nullptr && *whole == 1) || (real != nullptr && *real == 1.0);
    }
    case Harmless::kEmpty: {
      const auto* array = std::get_if<JsonArray>(&value.data);
      const auto* object = std::get_if<JsonObject>(&value.data);
      return (array != nullptr && array->empty()) || (object != nullptr && object->empty());
    }
  }
  return false;
}

std::string_view expected_of(Harmless harmless) {
  switch (harmless) {
    case Harmless::kNothing:
      return "null or no such field: it is not supported";
    case Harmless::kFalse:
      return "false: anything else is not supported";
    case Harmless::kOne:
      return "1: anything else is not supported";
    case Harmless::kEmpty:
      return "an empty list: anything else is not supported";
  }
  return "";
}

// Every element of the list `name`, if there is one, is `only`.
Status check_list(const FieldReader& fields, std::string_view name, std::string_view only) {
  const std::string expected = "a list of '" + std::string(only) + "', the only one supported";
  const JsonValue* value = fields.find(name);
  if (value == nullptr) {
    return Ok{};
  }
  const auto* list = std::get_if<JsonArray>(&value->data);
  if (list == nullptr) {
    return fields.error(ErrorCode::kBadFile, name, expected);
  }
  for (const JsonValue& element : *list) {
    const auto* text = std::get_if<std::string>(&element.data);
    if (text == nullptr || *text != only) {
      return fields.error_in(ErrorCode::kUnsupported, name, element, expected);
    }
  }
  return Ok{};
}

Result<const Family*> find_family(const FieldReader& fields) {
  std::string names;
  for (const Family& family : kFamilies) {
    names += (names.empty() ? "'" : ", '") + std::string(family.model_type) + "'";
  }
  const std::string expected = "one of " + names;
  TIDEKV_ASSIGN(const std::string model_type, fields.string("model_type", expected));
  const auto* family = std::ranges::find(kFamilies, model_type, &Family::model_type);
  if (family == std::end(kFamilies)) {
    return fields.error(ErrorCode::kUnsupported, "model_type", expected);
  }
  return family;
}

// A window that is switched off may still be written down. Where Mistral's config says nothing at
// all, Transformers takes one of 4096.
Status check_sliding_window(const FieldReader& fields, const Family& family) {
  const bool has_switch = family.model_type.starts_with("qwen");
  const auto is_written = [&] {
    return std::ranges::find(fields.members(), "sliding_window", &JsonMember::key) !=
           fields.members().end();
  };
  if ((fields.find("sliding_window") != nullptr && !has_switch) ||
      (family.model_type == "mistral" && !is_written())) {
    return fields.error(ErrorCode::kUnsupported, "sliding_window",
                        "null: a sliding window is not supported");
  }
  return Ok{};
}

// First of all: a file made for something else is not to be called damaged.
Status check_supported(const FieldReader& fields, const Family& family) {
  constexpr std::string_view kActivation = "'silu', the only one supported";
  TIDEKV_TRY(check_list(fields, "architectures", family.class_name));
  if (fields.find("hidden_act") != nullptr) {
    TIDEKV_ASSIGN(const std::string activation, fields.string("hidden_act", kActivation));
    if (activation != "silu") {
      return fields.error(ErrorCode::kUnsupported, "hidden_act", kActivation);
    }
  }
  TIDEKV_TRY(check_list(fields, "layer_types", "full_attention"));
  TIDEKV_TRY(check_sliding_window(fields, family));
  for (const Restriction& restriction : kRestrictions) {
    const JsonValue* value = fields.find(restriction.field);
    if (value != nullptr && !is_harmless(*value, restriction.harmless)) {
      return fields.error(ErrorCode::kUnsupported, restriction.field,
                          expected_of(restriction.harmless));
    }
  }
  return Ok{};
}

// "dtype" (Transformers 5) or "torch_dtype" (4), or nothing: then the weights' own type is taken.
Result<std::optional<DType>> parse_dtype(const FieldReader& fields) {
  constexpr std::string_view kExpected = "'bfloat16', 'float16' or 'float32'";
  std::optional<DType> dtype;
  for (const std::string_view key : {"dtype", "torch_dtype"}) {
    if (fields.find(key) == nullptr) {
      continue;
    }
    TIDEKV_ASSIGN(const std::string name, fields.string(key, kExpected));
    if (name != "bfloat16" && name != "float16" && name != "float32") {
      return fields.error(ErrorCode::kUnsupported, key, kExpected);
    }
    const DType named = name == "bfloat16"  ? DType::kBF16
                        : name == "float16" ? DType::kF16
                                            : DType::kF32;
    if (dtype && *dtype != named) {
      return fields.error(ErrorCode::kBadFile, key, "the same as in 'dtype'");
    }
    dtype = named;
  }
  return dtype;
}

Status parse_attention_shape(const FieldReader& fields, const Family& family, ModelConfig& config) {
  TIDEKV_ASSIGN(config.num_q_heads, fields.integer("num_attention_heads", kHeads));
  TIDEKV_ASSIGN(
      config.num_kv_heads,
      fields.integer_or("num_key_value_heads", kHeads,
                        family.num_kv_heads == 0 ? config.num_q_heads : family.num_kv_heads));
  if (config.num_q_heads % config.num_kv_heads != 0) {
    return fields.error(
        ErrorCode::kBadFile, "num_key_value_heads",
        "a divisor of 'num_attention_heads', " + std::to_string(config.num_q_heads));
  }
  if (fields.find("head_dim") != nullptr) {
    TIDEKV_ASSIGN(config.head_dim, fields.integer("head_dim", kHeadDim));
    if (config.head_dim % 2 != 0) {
      return fields.error(ErrorCode::kBadFile, "head_dim", "an even number");
    }
    return Ok{};
  }
  if (family.head_dim != 0) {
    config.head_dim = family.head_dim;
    return Ok{};
  }
  config.head_dim = config.hidden_dim / config.num_q_heads;
  if (config.hidden_dim % config.num_q_heads != 0 || config.head_dim % 2 != 0 ||
      config.head_dim > kHeadDim.max) {
    return fields.error(ErrorCode::kBadFile, "head_dim",
                        "it, or 'hidden_size' over 'num_attention_heads', to be an even number "
                        "from 2 to " +
                            std::to_string(kHeadDim.max));
  }
  return Ok{};
}

// eos_token_id: an id, a list of them, or nothing. Adds those not yet there.
Status add_eos_ids(const FieldReader& fields, ModelConfig& config) {
  const JsonValue* value = fields.find("eos_token_id");
  if (value == nullptr) {
    return Ok{};
  }
  const IntRange range = {0, config.vocab_size - 1};
  std::vector<std::int64_t> ids;
  if (std::holds_alternative<JsonArray>(value->data)) {
    TIDEKV_ASSIGN(ids, fields.integers("eos_token_id", range));
  } else {
    TIDEKV_ASSIGN(const std::int64_t id, fields.integer("eos_token_id", range));
    ids.push_back(id);
  }
  if (ids.size() > kMaxEosIds) {
    return fields.error(ErrorCode::kBadFile, "eos_token_id",
                        "at most " + std::to_string(kMaxEosIds) + " ids");
  }
  for (const std::int64_t id : ids) {
    const auto token = static_cast<std::int32_t>(id);
    if (std::ranges::find(config.eos_token_ids, token) == config.eos_token_ids.end()) {
      config.eos_token_ids.push_back(token);
    }
  }
  return Ok{};
}

Status parse_biases(const FieldReader& fields, const Family& family, ModelConfig& config) {
  TIDEKV_ASSIGN(const bool attention_bias, fields.boolean_or("attention_bias", false));
  TIDEKV_ASSIGN(const bool mlp_bias, fields.boolean_or("mlp_bias", false));
  for (const std::string_view name : {"attention_bias", "mlp_bias"}) {
    if (!family.bias_fields && (name == "mlp_bias" ? mlp_bias : attention_bias)) {
      return fields.error(ErrorCode::kUnsupported, name,
                          "false: " + std::string(family.model_type) + " has no such biases");
    }
  }
  config.qkv_bias = family.qkv_bias || attention_bias;
  config.output_bias = attention_bias;
  config.mlp_bias = mlp_bias;
  config.qk_norm = family.qk_norm;
  return Ok{};
}

Result<ModelConfig> parse_config(const FieldReader& fields) {
  TIDEKV_ASSIGN(const Family* family, find_family(fields));
  TIDEKV_TRY(check_supported(fields, *family));
  ModelConfig config;
  config.architecture = family->model_type;
  TIDEKV_ASSIGN(config.num_layers, fields.integer("num_hidden_layers", kLayers));
  TIDEKV_ASSIGN(config.hidden_dim, fields.integer("hidden_size", kHiddenDim));
  TIDEKV_ASSIGN(config.ffn_dim, fields.integer("intermediate_size", kFfnDim));
  TIDEKV_ASSIGN(config.vocab_size, fields.integer("vocab_size", kVocab));
  TIDEKV_TRY(parse_attention_shape(fields, *family, config));
  TIDEKV_TRY(parse_biases(fields, *family, config));
  TIDEKV_ASSIGN(config.max_positions,
                fields.integer_or("max_position_embeddings", kPositions, family->max_positions));
  TIDEKV_ASSIGN(config.rms_norm_eps, fields.number_or("rms_norm_eps", kNormEps, kDefaultNormEps));
  TIDEKV_ASSIGN(config.tied_embeddings, fields.boolean_or("tie_word_embeddings", false));
  TIDEKV_ASSIGN(config.rope, parse_rope(fields));
  TIDEKV_ASSIGN(config.dtype, parse_dtype(fields));
  TIDEKV_TRY(add_eos_ids(fields, config));
  return config;
}

std::string beside(const std::string& file, const std::string& name) {
  const std::size_t slash = file.rfind('/');
  return slash == std::string::npos ? name : file.substr(0, slash + 1) + name;
}

}  // namespace

Result<ModelConfig> parse_model_config(const std::string& config_json,
                                       const std::string& generation_config_json,
                                       const std::string& file) {
  TIDEKV_ASSIGN(const JsonObject object, parse_json_object(config_json, file, kLimits));
  TIDEKV_ASSIGN(ModelConfig config, parse_config(FieldReader(object, file)));
  if (!generation_config_json.empty()) {
    const std::string generation_file = beside(file, "generation_config.json");
    TIDEKV_ASSIGN(const JsonObject generation,
                  parse_json_object(generation_config_json, generation_file, kLimits));
    TIDEKV_TRY(add_eos_ids(FieldReader(generation, generation_file), config));
  }
  return config;
}

Result<ModelConfig> read_model_config(const std::string& folder) {
  const std::string file = join_path(folder, "config.json");
  TIDEKV_ASSIGN(const std::string json, read_small_file(file, kMaxConfigBytes));
  const std::string generation_file = join_path(folder, "generation_config.json");
  std::string generation_json;
  if (something_at(generation_file)) {
    TIDEKV_ASSIGN(generation_json, read_small_file(generation_file, kMaxConfigBytes));
    if (generation_json.empty()) {
      return Error{ErrorCode::kBadFile, generation_file + ": empty; expected a JSON object"};
    }
  }
  return parse_model_config(json, generation_json, file);
}

}  // namespace tidekv
