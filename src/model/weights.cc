#include "model/weights.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "base/json_value.h"

namespace tidekv {
namespace {

// One tensor: its name in either kind of file, and its shape. No rows: this model has none such.
struct TensorSpec {
  const char* hugging_face;
  const char* gguf;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

constexpr std::size_t kLayerTensors = 18;

// The tensors of a layer, in the order of layer_specs().
template <typename View>
std::array<View*, kLayerTensors> views_of(LayerTensors<View>& layer) {
  return {&layer.attention_norm, &layer.q.weight,  &layer.q.bias,    &layer.k.weight,
          &layer.k.bias,         &layer.v.weight,  &layer.v.bias,    &layer.q_norm,
          &layer.k_norm,         &layer.o.weight,  &layer.o.bias,    &layer.mlp_norm,
          &layer.gate.weight,    &layer.gate.bias, &layer.up.weight, &layer.up.bias,
          &layer.down.weight,    &layer.down.bias};
}

std::array<TensorSpec, kLayerTensors> layer_specs(const ModelConfig& config) {
  const std::int64_t d = config.hidden_dim;
  const std::int64_t q = config.q_dim();
  const std::int64_t kv = config.kv_dim();
  const std::int64_t ffn = config.ffn_dim;
  const std::int64_t qkv_bias = config.qkv_bias ? 1 : 0;
  const std::int64_t output_bias = config.output_bias ? 1 : 0;
  const std::int64_t mlp_bias = config.mlp_bias ? 1 : 0;
  const std::int64_t qk_norm = config.qk_norm ? 1 : 0;
  return {{
      {"input_layernorm.weight", "attn_norm.weight", 1, d},
      {"self_attn.q_proj.weight", "attn_q.weight", q, d},
      {"self_attn.q_proj.bias", "attn_q.bias", qkv_bias, q},
      {"self_attn.k_proj.weight", "attn_k.weight", kv, d},
      {"self_attn.k_proj.bias", "attn_k.bias", qkv_bias, kv},
      {"self_attn.v_proj.weight", "attn_v.weight", kv, d},
      {"self_attn.v_proj.bias", "attn_v.bias", qkv_bias, kv},
      {"self_attn.q_norm.weight", "attn_q_norm.weight", qk_norm, config.head_dim},
      {"self_attn.k_norm.weight", "attn_k_norm.weight", qk_norm, config.head_dim},
      {"self_attn.o_proj.weight", "attn_output.weight", d, q},
      {"self_attn.o_proj.bias", "attn_output.bias", output_bias, d},
      {"post_attention_layernorm.weight", "ffn_norm.weight", 1, d},
      {"mlp.gate_proj.weight", "ffn_gate.weight", ffn, d},
      {"mlp.gate_proj.bias", "ffn_gate.bias", mlp_bias, ffn},
      {"mlp.up_proj.weight", "ffn_up.weight", ffn, d},
      {"mlp.up_proj.bias", "ffn_up.bias", mlp_bias, ffn},
      {"mlp.down_proj.weight", "ffn_down.weight", d, ffn},
      {"mlp.down_proj.bias", "ffn_down.bias", mlp_bias, d},
  }};
}

TensorSpec embedding_spec(const ModelConfig& config) {
  return {"model.embed_tokens.weight", "token_embd.weight", config.vocab_size, config.hidden_dim};
}
TensorSpec final_norm_spec(const ModelConfig& config) {
  return {"model.norm.weight", "output_norm.weight", 1, config.hidden_dim};
}
TensorSpec output_spec(const ModelConfig& config) {
  return {"lm_head.weight", "output.weight", config.vocab_size, config.hidden_dim};
}

// The names one file uses, and the words for what asks for a shape.
struct Naming {
  const TensorFile& file;
  bool gguf = file.metadata() != nullptr;

  std::string name(const TensorSpec& spec) const { return gguf ? spec.gguf : spec.hugging_face; }
  std::string layer_prefix(std::int64_t layer) const {
    return (gguf ? "blk." : "model.layers.") + std::to_string(layer) + ".";
  }
  const char* source() const { return gguf ? "the metadata" : "config.json"; }
  // The field that counts the layers, for errors.
  std::string layers_field(const ModelConfig& config) const {
    return "field '" + (gguf ? config.architecture + ".block_count" : "num_hidden_layers") +
           "' of " + source() + " is " + std::to_string(config.num_layers);
  }
};

std::string shape_text(std::int64_t rows, std::int64_t cols) {
  return rows == 1 ? "[" + std::to_string(cols) + "]"
                   : "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
}

// An empty view where the model has no such tensor.
Result<HostView> find_matrix(const Naming& naming, const std::string& prefix,
                             const TensorSpec& spec) {
  if (spec.rows == 0) {
    return HostView{};
  }
  const std::string name = prefix + naming.name(spec);
  TIDEKV_ASSIGN(const HostView view, naming.file.matrix(name));
  const std::string what = naming.file.path_of(name) + ": tensor '" + name + "'";
  if (view.rows != spec.rows || view.cols != spec.cols) {
    return Error{ErrorCode::kBadFile, what + " has shape " + shape_text(view.rows, view.cols) +
                                          "; expected " + shape_text(spec.rows, spec.cols) +
                                          ", as " + naming.source() + " asks for"};
  }
  if (spec.rows == 1 && is_quantised(view.dtype)) {
    return Error{ErrorCode::kUnsupported, what + " is of type " + std::string(name_of(view.dtype)) +
                                              "; expected F32, F16 or BF16 for a vector"};
  }
  return view;
}

// Names of the tensors that the arithmetic uses.
std::set<std::string, std::less<>> used_names(const Naming& naming, const ModelConfig& config) {
  std::set<std::string, std::less<>> used = {naming.name(embedding_spec(config)),
                                             naming.name(final_norm_spec(config)),
                                             naming.name(output_spec(config)), "rope_freqs.weight"};
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    for (const TensorSpec& spec : layer_specs(config)) {
      if (spec.rows > 0) {
        used.insert(naming.layer_prefix(layer) + naming.name(spec));
      }
    }
  }
  return used;
}

// The layer a tensor's name puts it in; -1: none.
std::int64_t layer_of(const Naming& naming, std::string_view name) {
  const std::string_view prefix = naming.gguf ? "blk." : "model.layers.";
  if (!name.starts_with(prefix)) {
    return -1;
  }
  std::int64_t layer = -1;
  const std::string_view digits = name.substr(prefix.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), layer);
  return layer;
}

// A tensor left out of the arithmetic would be a silently wrong model. A Hugging Face folder may
// hold buffers that are computed anew; only what is known to matter is refused there.
Status refuse_unused_tensor(const Naming& naming, const ModelConfig& config,
                            const std::string& name) {
  const std::string what = naming.file.path() + ": tensor " + in_quotes(name);
  if (const std::int64_t layer = layer_of(naming, name); layer >= config.num_layers) {
    return Error{ErrorCode::kBadFile, what + " is of layer " + std::to_string(layer) +
                                          ", counted from 0, but " + naming.layers_field(config) +
                                          "; expected a layer for every one counted, and no more"};
  }
  const bool matters = naming.gguf || name.ends_with(".bias") || name.ends_with("norm.weight");
  if (matters) {
    return Error{ErrorCode::kUnsupported, what + " is not part of the " + config.architecture +
                                              " architecture as " + naming.source() +
                                              " describes it"};
  }
  return Ok{};
}

Status refuse_unused_tensors(const Naming& naming, const ModelConfig& config) {
  const auto used = used_names(naming, config);
  for (const auto& [name, info] : naming.file.tensors()) {
    if (!used.contains(name)) {
      TIDEKV_TRY(refuse_unused_tensor(naming, config, name));
    }
  }
  for (const auto& [name, dtype] : naming.file.other_dtypes()) {
    if (!used.contains(name)) {
      TIDEKV_TRY(refuse_unused_tensor(naming, config, name));
    }
  }
  return Ok{};
}

// More layers than the tensors are of; fewer show as tensors that nobody uses.
Status check_num_layers(const Naming& naming, const ModelConfig& config) {
  std::int64_t last = -1;
  for (const auto& [name, info] : naming.file.tensors()) {
    last = std::max(last, layer_of(naming, name));
  }
  for (const auto& [name, dtype] : naming.file.other_dtypes()) {
    last = std::max(last, layer_of(naming, name));
  }
  if (last + 1 >= config.num_layers) {
    return Ok{};
  }
  return Error{ErrorCode::kBadFile, naming.file.path() + ": " + naming.layers_field(config) +
                                        ", but the tensors are of " + std::to_string(last + 1) +
                                        " layers; expected the same number"};
}

template <typename View, typename Visit>
void for_each_matrix(const ModelTensors<View>& model, Visit visit) {
  visit(model.embedding);
  visit(model.final_norm);
  if (!model.tied) {
    visit(model.output);
  }
  for (LayerTensors<View> layer : model.layers) {
    for (const View* view : views_of(layer)) {
      visit(*view);
    }
  }
}

}  // namespace

Result<HostModel> bind_weights(const TensorFile& file, const ModelConfig& config) {
  const Naming naming{file};
  TIDEKV_TRY(refuse_unused_tensors(naming, config));
  TIDEKV_TRY(check_num_layers(naming, config));
  HostModel model;
  TIDEKV_ASSIGN(model.embedding, find_matrix(naming, "", embedding_spec(config)));
  TIDEKV_ASSIGN(model.final_norm, find_matrix(naming, "", final_norm_spec(config)));
  model.tied = config.tied_embeddings;
  if (model.tied) {
    model.output = model.embedding;
  } else {
    TIDEKV_ASSIGN(model.output, find_matrix(naming, "", output_spec(config)));
  }
  const auto specs = layer_specs(config);
  model.layers.resize(static_cast<std::size_t>(config.num_layers));
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    const std::string prefix = naming.layer_prefix(static_cast<std::int64_t>(layer));
    const auto views = views_of(model.layers[layer]);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      TIDEKV_ASSIGN(*views[i], find_matrix(naming, prefix, specs[i]));
    }
  }
  return model;
}

HostModel shapes_of(const ModelConfig& config) {
  const auto shape = [&](const TensorSpec& spec) {
    return HostView{nullptr, config.dtype.value_or(DType::kBF16), spec.rows, spec.cols};
  };
  HostModel model;
  model.embedding = shape(embedding_spec(config));
  model.final_norm = shape(final_norm_spec(config));
  model.output = shape(output_spec(config));
  model.tied = config.tied_embeddings;
  const auto specs = layer_specs(config);
  model.layers.resize(static_cast<std::size_t>(config.num_layers));
  for (LayerTensors<HostView>& layer : model.layers) {
    const auto views = views_of(layer);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      *views[i] = shape(specs[i]);
    }
  }
  return model;
}

std::int64_t num_parameters(const HostModel& model) {
  std::int64_t count = 0;
  for_each_matrix(model, [&](const HostView& v) { count += v.rows * v.cols; });
  return count;
}

std::int64_t weights_bytes(const HostModel& model) {
  std::int64_t bytes = 0;
  for_each_matrix(model, [&](const HostView& v) { bytes += v.num_bytes(); });
  return bytes;
}

Result<DeviceModel> import_weights(Backend& backend, const HostModel& model) {
  const auto import = [&](const HostView& from, DeviceView& to) -> Status {
    if (from.rows > 0) {
      TIDEKV_ASSIGN(to, backend.import_weights(from));
    }
    return Ok{};
  };
  DeviceModel device;
  device.tied = model.tied;
  TIDEKV_TRY(import(model.embedding, device.embedding));
  TIDEKV_TRY(import(model.final_norm, device.final_norm));
  if (model.tied) {
    device.output = device.embedding;
  } else {
    TIDEKV_TRY(import(model.output, device.output));
  }
  for (LayerTensors<HostView> layer : model.layers) {
    LayerTensors<DeviceView> imported;
    const auto from = views_of(layer);
    const auto to = views_of(imported);
    for (std::size_t i = 0; i < from.size(); ++i) {
      TIDEKV_TRY(import(*from[i], *to[i]));
    }
    device.layers.push_back(imported);
  }
  return device;
}

}  // namespace tidekv
