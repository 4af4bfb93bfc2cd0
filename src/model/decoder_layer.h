// One decoder layer over one chunk of rows, appending to the layer's KV.
//
// RMSNorm, q/k/v (per-head RMSNorm of q and k in some models), RoPE, causal attention, output
// projection and residual; RMSNorm, SwiGLU MLP and residual. Hidden rows are overwritten in place:
// the chunk's slot of the hidden bridge.
#pragma once

#include <cstdint>

#include "backend/backend.h"
#include "cache/active_layer.h"
#include "model/config.h"
#include "model/weights.h"

namespace tidekv {

// How attention of a prompt runs. All give the same bits; they hold different memory.
enum class AttentionKind : std::uint8_t {
  kFlash,   // neither mask nor scores
  kMasked,  // the mask of a chunk that has keys before it; without, a fused kernel needs none
  kEager,   // the mask, all scores, and their softmax beside them
};

// How many rows each activation buffer of a layer must hold.
struct LayerWorkspaceShape {
  std::int64_t chunk_len = 0;      // rows normed and projected at once
  std::int64_t query_len = 0;      // rows that attend and go through the MLP at once; <= chunk_len
  std::int64_t projected_len = 0;  // rows whose queries are formed; >= query_len
  std::int64_t mlp_tile_len = 0;   // rows inside the MLP at once; <= query_len
  // As frameworks do: gate, up and their product each in full, where else only the product is ever
  // whole; and keys and values beside the cache, which then holds no rows yet, where else they are
  // born in it.
  bool as_framework = false;
  HeadStorage staged = {};  // of those keys and values
  AttentionKind attention = AttentionKind::kFlash;
  KeyCounts keys = {};  // that attention may meet at once, where it holds anything
};

// Activation buffers of one layer (component kActivations). Lives while the layer runs.
class LayerWorkspace {
 public:
  static Result<LayerWorkspace> open(Backend& backend, const ModelConfig& config, DType dtype,
                                     const LayerWorkspaceShape& shape);

 private:
  friend class DecoderLayer;
  struct Matrix {
    Buffer buffer;
    DType dtype = DType::kF32;
    std::int64_t cols = 0;
    // The first `rows` rows.
    DeviceView rows(std::int64_t count) const { return buffer.view(dtype, count, cols); }
  };
  static Result<Matrix> matrix(Backend& backend, DType dtype, std::int64_t rows, std::int64_t cols);
  Status open_attention(Backend& backend, const ModelConfig& config, DType dtype,
                        const LayerWorkspaceShape& shape);
  Status open_as_framework(Backend& backend, const ModelConfig& config, DType dtype,
                           const LayerWorkspaceShape& shape);

  std::int64_t mlp_tile_len_ = 0;
  Matrix normed_;   // [chunk_len, d_model]
  Matrix queries_;  // [projected_len, q_dim]; attention output in place
  Matrix angles_;   // [chunk_len, head_dim] f32
  Matrix product_;  // [mlp_tile_len, d_ff], of gate and up
  Matrix gate_;     // [mlp_tile_len, d_ff], only as frameworks hold them
  Matrix up_;       // the same
  LayerKv staged_;  // of chunk_len rows, likewise
  Buffer mask_;     // [query_len, keys.longest_head], where attention holds it
  Buffer scores_;   // [group * query_len, keys.total] f32, likewise
  Buffer weights_;  // the same
};

class DecoderLayer {
 public:
  // `inverse_freq` [1, head_dim / 2] f32 on the device.
  DecoderLayer(Backend& backend, const ModelConfig& config, const LayerTensors<DeviceView>& weights,
               DeviceView inverse_freq, Phase phase)
      : backend_(&backend),
        config_(&config),
        weights_(&weights),
        inverse_freq_(inverse_freq),
        phase_(phase) {}

  // Runs hidden [rows, d_model] at positions first, first + 1, ... and appends to `kv`.
  // `window` receives the queries of the positions from window_begin on, if it has rows.
  // Moments take all that count, if they have rows.
  struct Window {
    DeviceView queries;      // [W, q_dim]
    DeviceView lse;          // [2 * q_heads, W] f32: log-sum-exps of those rows; or no rows
    std::int64_t begin = 0;  // position of row 0
    ObservedQueries observed = {};
  };
  void forward(DeviceView hidden, Position first, AttendedKv& kv, const Window& window,
               LayerWorkspace& workspace) const;

  // The last layer when only the last row matters: keys and values of all rows, queries of the
  // window's rows, and, if `finish_last_row`, attention and MLP of the chunk's last row.
  void forward_last_row(DeviceView hidden, Position first, AttendedKv& kv, const Window& window,
                        bool finish_last_row, LayerWorkspace& workspace) const;

 private:
  void project(DeviceView rows, const Linear<DeviceView>& linear, DeviceView out,
               MatmulMode mode) const;
  // Norms the rows; then queries of the newest of them, as many as `queries` has rows, and keys and
  // values of all, appended to `kv`.
  void project_heads(DeviceView hidden, Position first, DeviceView queries, AttendedKv& kv,
                     LayerWorkspace& workspace) const;
  // The queries of rows at `first`, to the moments.
  void observe(DeviceView queries, Position first, const ObservedQueries& observed,
               LayerWorkspace& workspace) const;
  void attend(DeviceView queries, AttendedKv& kv, const LseColumns& lse,
              LayerWorkspace& workspace) const;
  void mlp_after_attention(DeviceView hidden, DeviceView attended, LayerWorkspace& workspace) const;
  void mlp(DeviceView hidden, LayerWorkspace& workspace) const;
  void gate_and_up(DeviceView rows, DeviceView product, LayerWorkspace& workspace) const;

  Backend* backend_;
  const ModelConfig* config_;
  const LayerTensors<DeviceView>* weights_;
  DeviceView inverse_freq_;
  Phase phase_;
};

}  // namespace tidekv
