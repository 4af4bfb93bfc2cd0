#include "model/weights.h"

#include <array>
#include <string>

namespace tidekv {
namespace {

// One tensor of a layer: its name in Hugging Face files, and its shape.
struct LayerTensorSpec {
  const char* name;
  HostView LayerTensors<HostView>::*host;
  DeviceView LayerTensors<DeviceView>::*device;
  std::int64_t rows;
  std::int64_t cols;
};

std::array<LayerTensorSpec, 9> layer_specs(const ModelConfig& config) {
  using Host = LayerTensors<HostView>;
  using Device = LayerTensors<DeviceView>;
  const std::int64_t d = config.hidden_dim;
  return {{
      {"input_layernorm.weight", &Host::attention_norm, &Device::attention_norm, 1, d},
      {"self_attn.q_proj.weight", &Host::q, &Device::q, config.q_dim(), d},
      {"self_attn.k_proj.weight", &Host::k, &Device::k, config.kv_dim(), d},
      {"self_attn.v_proj.weight", &Host::v, &Device::v, config.kv_dim(), d},
      {"self_attn.o_proj.weight", &Host::o, &Device::o, d, config.q_dim()},
      {"post_attention_layernorm.weight", &Host::mlp_norm, &Device::mlp_norm, 1, d},
      {"mlp.gate_proj.weight", &Host::gate, &Device::gate, config.ffn_dim, d},
      {"mlp.up_proj.weight", &Host::up, &Device::up, config.ffn_dim, d},
      {"mlp.down_proj.weight", &Host::down, &Device::down, d, config.ffn_dim},
  }};
}

constexpr const char* kEmbeddingName = "model.embed_tokens.weight";
constexpr const char* kFinalNormName = "model.norm.weight";
constexpr const char* kOutputName = "lm_head.weight";

std::string shape_text(std::int64_t rows, std::int64_t cols) {
  return rows == 1 ? "[" + std::to_string(cols) + "]"
                   : "[" + std::to_string(rows) + ", " + std::to_string(cols) + "]";
}

Result<HostView> find_matrix(const TensorFile& file, const std::string& name, std::int64_t rows,
                             std::int64_t cols) {
  TIDEKV_ASSIGN(const HostView view, file.matrix(name));
  if (view.rows != rows || view.cols != cols) {
    return Error{ErrorCode::kBadFile, file.path() + ": tensor '" + name + "' has shape " +
                                          shape_text(view.rows, view.cols) +
                                          "; config.json asks for " + shape_text(rows, cols)};
  }
  return view;
}

// A bias or per-head norm left out of the arithmetic would be a silently wrong model.
Status refuse_unused_tensors(const TensorFile& file, const ModelConfig& config) {
  const std::string surplus_layer = "model.layers." + std::to_string(config.num_layers) + ".";
  for (const auto& [name, info] : file.tensors()) {
    if (name.starts_with(surplus_layer)) {
      return Error{ErrorCode::kBadFile,
                   file.path() + ": tensor '" + name + "' is of layer " +
                       std::to_string(config.num_layers) + ", counted from 0; config.json's " +
                       "num_hidden_layers is " + std::to_string(config.num_layers)};
    }
    const bool is_bias = name.ends_with(".bias");
    const bool is_head_norm = name.ends_with("q_norm.weight") || name.ends_with("k_norm.weight");
    if (is_bias || is_head_norm) {
      return Error{ErrorCode::kUnsupported,
                   file.path() + ": tensor '" + name +
                       "' is not part of the llama architecture this build runs"};
    }
  }
  return Ok{};
}

template <typename View, typename Visit>
void for_each_matrix(const ModelTensors<View>& model, bool tied, Visit visit) {
  visit(model.embedding);
  visit(model.final_norm);
  if (!tied) {
    visit(model.output);
  }
  for (const LayerTensors<View>& layer : model.layers) {
    for (const View* view : {&layer.attention_norm, &layer.q, &layer.k, &layer.v, &layer.o,
                             &layer.mlp_norm, &layer.gate, &layer.up, &layer.down}) {
      visit(*view);
    }
  }
}

}  // namespace

Result<HostModel> bind_weights(const TensorFile& file, const ModelConfig& config) {
  TIDEKV_TRY(refuse_unused_tensors(file, config));
  HostModel model;
  const std::int64_t d = config.hidden_dim;
  TIDEKV_ASSIGN(model.embedding, find_matrix(file, kEmbeddingName, config.vocab_size, d));
  TIDEKV_ASSIGN(model.final_norm, find_matrix(file, kFinalNormName, 1, d));
  model.tied = config.tied_embeddings;
  if (model.tied) {
    model.output = model.embedding;
  } else {
    TIDEKV_ASSIGN(model.output, find_matrix(file, kOutputName, config.vocab_size, d));
  }
  model.layers.resize(static_cast<std::size_t>(config.num_layers));
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    for (const LayerTensorSpec& spec : layer_specs(config)) {
      TIDEKV_ASSIGN(model.layers[layer].*spec.host,
                    find_matrix(file, prefix + spec.name, spec.rows, spec.cols));
    }
  }
  return model;
}

HostModel shapes_of(const ModelConfig& config) {
  const auto shape = [&](std::int64_t rows, std::int64_t cols) {
    return HostView{nullptr, config.dtype, rows, cols};
  };
  HostModel model;
  model.embedding = shape(config.vocab_size, config.hidden_dim);
  model.final_norm = shape(1, config.hidden_dim);
  model.output = model.embedding;
  model.tied = config.tied_embeddings;
  model.layers.resize(static_cast<std::size_t>(config.num_layers));
  for (LayerTensors<HostView>& layer : model.layers) {
    for (const LayerTensorSpec& spec : layer_specs(config)) {
      layer.*spec.host = shape(spec.rows, spec.cols);
    }
  }
  return model;
}

std::int64_t num_parameters(const HostModel& model) {
  std::int64_t count = 0;
  for_each_matrix(model, model.tied, [&](const HostView& v) { count += v.rows * v.cols; });
  return count;
}

std::int64_t weights_bytes(const HostModel& model) {
  std::int64_t bytes = 0;
  for_each_matrix(model, model.tied, [&](const HostView& v) { bytes += v.num_bytes(); });
  return bytes;
}

Result<DeviceModel> import_weights(Backend& backend, const HostModel& model,
                                   const ModelConfig& config) {
  DeviceModel device;
  device.tied = model.tied;
  TIDEKV_ASSIGN(device.embedding, backend.import_weights(model.embedding));
  TIDEKV_ASSIGN(device.final_norm, backend.import_weights(model.final_norm));
  if (model.tied) {
    device.output = device.embedding;
  } else {
    TIDEKV_ASSIGN(device.output, backend.import_weights(model.output));
  }
  device.layers.resize(model.layers.size());
  for (std::size_t layer = 0; layer < model.layers.size(); ++layer) {
    for (const LayerTensorSpec& spec : layer_specs(config)) {
      TIDEKV_ASSIGN(device.layers[layer].*spec.device,
                    backend.import_weights(model.layers[layer].*spec.host));
    }
  }
  return device;
}

}  // namespace tidekv
