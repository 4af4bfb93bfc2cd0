#include "model/decoder_layer.h"

#include <algorithm>

#include "base/check.h"

namespace tidekv {
namespace {

// Rows [begin, end) of a chunk at `first` whose positions lie in the window; empty: begin == end.
struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

RowRange rows_in_window(const DecoderLayer::Window& window, Position first, std::int64_t rows) {
  if (window.queries.rows() == 0) {
    return {};
  }
  const std::int64_t begin = std::max<std::int64_t>(0, window.begin - index_of(first));
  return {std::min(begin, rows), rows};
}

}  // namespace

Result<LayerWorkspace::Matrix> LayerWorkspace::matrix(Backend& backend, DType dtype,
                                                      std::int64_t rows, std::int64_t cols) {
  Matrix matrix;
  TIDEKV_ASSIGN(matrix.buffer,
                backend.allocate({{Component::kActivations, rows * cols * size_of(dtype)}}));
  matrix.dtype = dtype;
  matrix.cols = cols;
  return matrix;
}

Result<LayerWorkspace> LayerWorkspace::open(Backend& backend, const ModelConfig& config,
                                            DType dtype, const LayerWorkspaceShape& shape) {
  LayerWorkspace ws;
  ws.mlp_tile_len_ = shape.mlp_tile_len;
  TIDEKV_ASSIGN(ws.normed_, matrix(backend, dtype, shape.chunk_len, config.hidden_dim));
  TIDEKV_ASSIGN(ws.queries_, matrix(backend, dtype, shape.query_len, config.q_dim()));
  TIDEKV_ASSIGN(ws.keys_, matrix(backend, dtype, shape.chunk_len, config.kv_dim()));
  TIDEKV_ASSIGN(ws.values_, matrix(backend, dtype, shape.chunk_len, config.kv_dim()));
  TIDEKV_ASSIGN(ws.angles_, matrix(backend, DType::kF32, shape.chunk_len, config.head_dim));
  TIDEKV_ASSIGN(ws.product_, matrix(backend, dtype, shape.mlp_tile_len, config.ffn_dim));
  if (shape.separate_gate_and_up) {
    TIDEKV_ASSIGN(ws.gate_, matrix(backend, dtype, shape.mlp_tile_len, config.ffn_dim));
    TIDEKV_ASSIGN(ws.up_, matrix(backend, dtype, shape.mlp_tile_len, config.ffn_dim));
  }
  return ws;
}

void DecoderLayer::forward(DeviceView hidden, Position first, LayerKv& kv, const Window& window,
                           LayerWorkspace& workspace) const {
  append_keys_values(hidden, first, kv, workspace);
  const DeviceView queries = workspace.queries_.rows(hidden.rows());
  project_rotated(workspace.normed_.rows(hidden.rows()), weights_->q, weights_->q_norm,
                  workspace.angles_.rows(hidden.rows()), queries);

  const RowRange kept = rows_in_window(window, first, hidden.rows());
  if (kept.begin < kept.end) {
    const std::int64_t window_row = index_of(first) + kept.begin - window.begin;
    backend_->copy(queries.rows_at(kept.begin, kept.end - kept.begin),
                   window.queries.rows_at(window_row, kept.end - kept.begin));
  }
  attend_and_mlp(hidden, queries, kv, workspace);
}

void DecoderLayer::forward_last_row(DeviceView hidden, Position first, LayerKv& kv,
                                    const Window& window, bool finish_last_row,
                                    LayerWorkspace& workspace) const {
  append_keys_values(hidden, first, kv, workspace);
  const DeviceView normed = workspace.normed_.rows(hidden.rows());
  const DeviceView angles = workspace.angles_.rows(hidden.rows());

  const RowRange kept = rows_in_window(window, first, hidden.rows());
  if (kept.begin < kept.end) {
    const std::int64_t count = kept.end - kept.begin;
    const std::int64_t window_row = index_of(first) + kept.begin - window.begin;
    const DeviceView queries = window.queries.rows_at(window_row, count);
    project_rotated(normed.rows_at(kept.begin, count), weights_->q, weights_->q_norm,
                    angles.rows_at(kept.begin, count), queries);
  }
  if (finish_last_row) {
    const std::int64_t last = hidden.rows() - 1;
    const DeviceView query = workspace.queries_.rows(1);
    project_rotated(normed.rows_at(last, 1), weights_->q, weights_->q_norm, angles.rows_at(last, 1),
                    query);
    attend_and_mlp(hidden.rows_at(last, 1), query, kv, workspace);
  }
}

void DecoderLayer::project(DeviceView rows, const Linear<DeviceView>& linear, DeviceView out,
                           MatmulMode mode) const {
  backend_->matmul(rows, linear.weight, out, {.mode = mode, .phase = phase_, .bias = linear.bias});
}

void DecoderLayer::project_rotated(DeviceView rows, const Linear<DeviceView>& linear,
                                   DeviceView head_norm, DeviceView angles, DeviceView out) const {
  project(rows, linear, out, MatmulMode::kStore);
  if (head_norm.rows() > 0) {
    const DeviceView heads =
        out.reshaped(out.rows() * out.cols() / config_->head_dim, config_->head_dim);
    backend_->rms_norm(heads, head_norm, static_cast<float>(config_->rms_norm_eps), heads);
  }
  backend_->rope(out, angles, config_->rope.pairs);
}

void DecoderLayer::append_keys_values(DeviceView hidden, Position first, LayerKv& kv,
                                      LayerWorkspace& workspace) const {
  const std::int64_t rows = hidden.rows();
  const DeviceView normed = workspace.normed_.rows(rows);
  const DeviceView keys = workspace.keys_.rows(rows);
  const DeviceView values = workspace.values_.rows(rows);
  const DeviceView angles = workspace.angles_.rows(rows);
  backend_->rms_norm(hidden, weights_->attention_norm, static_cast<float>(config_->rms_norm_eps),
                     normed);
  backend_->rope_angles(inverse_freq_, first, angles);
  project_rotated(normed, weights_->k, weights_->k_norm, angles, keys);
  project(normed, weights_->v, values, MatmulMode::kStore);
  backend_->append_kv(keys, values, kv.view());
  kv.advance(rows);
}

void DecoderLayer::attend_and_mlp(DeviceView hidden, DeviceView queries, const LayerKv& kv,
                                  LayerWorkspace& workspace) const {
  backend_->attend(queries, kv.view(), phase_);
  project(queries, weights_->o, hidden, MatmulMode::kAccumulate);
  mlp(hidden, workspace);
}

void DecoderLayer::mlp(DeviceView hidden, LayerWorkspace& workspace) const {
  const DeviceView normed = workspace.normed_.rows(hidden.rows());
  backend_->rms_norm(hidden, weights_->mlp_norm, static_cast<float>(config_->rms_norm_eps), normed);
  for (std::int64_t begin = 0; begin < hidden.rows(); begin += workspace.mlp_tile_len_) {
    const std::int64_t count = std::min(workspace.mlp_tile_len_, hidden.rows() - begin);
    const DeviceView product = workspace.product_.rows(count);
    gate_and_up(normed.rows_at(begin, count), product, workspace);
    project(product, weights_->down, hidden.rows_at(begin, count), MatmulMode::kAccumulate);
  }
}

void DecoderLayer::gate_and_up(DeviceView rows, DeviceView product,
                               LayerWorkspace& workspace) const {
  if (!workspace.gate_.buffer) {
    backend_->gated_matmul(rows, weights_->gate, weights_->up, product, phase_);
    return;
  }
  const DeviceView gate = workspace.gate_.rows(rows.rows());
  const DeviceView up = workspace.up_.rows(rows.rows());
  project(rows, weights_->gate, gate, MatmulMode::kStore);
  project(rows, weights_->up, up, MatmulMode::kStore);
  backend_->swiglu(gate, up, product);
}

}  // namespace tidekv
