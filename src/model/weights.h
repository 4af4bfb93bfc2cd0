// Names in the file to matrices on the device.
//
// The same structure holds views of the mapped file (HostView) and of device memory (DeviceView);
// importing maps one to the other. Matrices stay in the file's type and layout: [out, in].
#pragma once

#include <cstdint>
#include <vector>

#include "backend/backend.h"
#include "io/tensor_file.h"
#include "model/config.h"
#include "tensor/linear.h"

namespace tidekv {

template <typename View>
struct LayerTensors {
  View attention_norm;  // [1, d_model]
  Linear<View> q;       // [q_dim, d_model]
  Linear<View> k;       // [kv_dim, d_model]
  Linear<View> v;       // [kv_dim, d_model]
  View q_norm;          // [1, head_dim]; no rows without qk_norm
  View k_norm;          // [1, head_dim]; the same
  Linear<View> o;       // [d_model, q_dim]
  View mlp_norm;        // [1, d_model]
  Linear<View> gate;    // [d_ff, d_model]
  Linear<View> up;      // [d_ff, d_model]
  Linear<View> down;    // [d_model, d_ff]
};

template <typename View>
struct ModelTensors {
  View embedding;   // [vocab, d_model]
  View final_norm;  // [1, d_model]
  View output;      // [vocab, d_model]; the embedding itself when tied
  bool tied = false;
  std::vector<LayerTensors<View>> layers;
};

using HostModel = ModelTensors<HostView>;
using DeviceModel = ModelTensors<DeviceView>;

// Finds every tensor the config calls for, by the names of the file's format and with the shape it
// must have. A missing tensor, a wrong shape or a bias that would be ignored is an error naming it.
Result<HostModel> bind_weights(const TensorFile& file, const ModelConfig& config);

// Shapes only, all in config.dtype (BF16 if it names none): enough to plan.
HostModel shapes_of(const ModelConfig& config);

// Elements of all matrices, the tied output counted once.
std::int64_t num_parameters(const HostModel& model);

// Bytes of the same.
std::int64_t weights_bytes(const HostModel& model);

Result<DeviceModel> import_weights(Backend& backend, const HostModel& model);

}  // namespace tidekv
