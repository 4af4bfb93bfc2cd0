#include "model/decoder_layer.h"

#include <algorithm>

#include "base/check.h"

namespace tidekv {
namespace {

DeviceView newest_rows(DeviceView rows, std::int64_t count) {
  return rows.rows_at(rows.rows() - count, count);
}

// The window's rows that belong to the newest of `rows` positions from `first` on; maybe none.
DeviceView newest_in_window(const DecoderLayer::Window& window, Position first, std::int64_t rows) {
  if (window.queries.rows() == 0) {
    return {};
  }
  const std::int64_t end = index_of(first) + rows;
  const std::int64_t begin = std::max<std::int64_t>(index_of(first), window.begin);
  return begin < end ? window.queries.rows_at(begin - window.begin, end - begin) : DeviceView{};
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
  TIDEKV_ASSIGN(ws.queries_, matrix(backend, dtype, shape.projected_len, config.q_dim()));
  TIDEKV_ASSIGN(ws.angles_, matrix(backend, DType::kF32, shape.chunk_len, config.head_dim));
  TIDEKV_ASSIGN(ws.product_, matrix(backend, dtype, shape.mlp_tile_len, config.ffn_dim));
  if (shape.as_framework) {
    TIDEKV_TRY(ws.open_as_framework(backend, config, dtype, shape));
  }
  TIDEKV_TRY(ws.open_attention(backend, config, dtype, shape));
  return ws;
}

Status LayerWorkspace::open_attention(Backend& backend, const ModelConfig& config, DType dtype,
                                      const LayerWorkspaceShape& shape) {
  const bool eager = shape.attention == AttentionKind::kEager;
  const bool has_past = shape.keys.longest_head > shape.chunk_len;
  if (eager || (shape.attention == AttentionKind::kMasked && has_past)) {
    const std::int64_t bytes = shape.query_len * shape.keys.longest_head * size_of(dtype);
    TIDEKV_ASSIGN(mask_, backend.allocate({{Component::kAttentionScores, bytes}}));
  }
  if (eager) {
    const std::int64_t rows = config.num_q_heads / config.num_kv_heads * shape.query_len;
    const std::int64_t bytes = rows * shape.keys.total * size_of(DType::kF32);
    TIDEKV_ASSIGN(scores_, backend.allocate({{Component::kAttentionScores, bytes}}));
    TIDEKV_ASSIGN(weights_, backend.allocate({{Component::kAttentionScores, bytes}}));
  }
  return Ok{};
}

Status LayerWorkspace::open_as_framework(Backend& backend, const ModelConfig& config, DType dtype,
                                         const LayerWorkspaceShape& shape) {
  TIDEKV_ASSIGN(gate_, matrix(backend, dtype, shape.mlp_tile_len, config.ffn_dim));
  TIDEKV_ASSIGN(up_, matrix(backend, dtype, shape.mlp_tile_len, config.ffn_dim));
  std::fill(shape.staged.lens.begin(), shape.staged.lens.end(), shape.chunk_len);
  const CacheShape cache{
      .num_kv_heads = config.num_kv_heads, .head_dim = config.head_dim, .dtype = dtype};
  const LayerKv::Rows rows{shape.staged.lens, 0, Component::kActivations};
  TIDEKV_ASSIGN(staged_, LayerKv::allocate(backend, cache, rows, shape.staged.spans));
  return Ok{};
}

void DecoderLayer::forward(DeviceView hidden, Position first, AttendedKv& kv, const Window& window,
                           LayerWorkspace& workspace) const {
  const DeviceView queries = workspace.queries_.rows(hidden.rows());
  project_heads(hidden, first, queries, kv, workspace);
  const DeviceView kept = newest_in_window(window, first, hidden.rows());
  if (kept.rows() > 0) {
    backend_->copy(newest_rows(queries, kept.rows()), kept);
  }
  observe(queries, first, window.observed, workspace);
  LseColumns lse;
  if (window.lse.rows() > 0) {
    const std::int64_t behind = index_of(first) + hidden.rows() - window.begin;
    lse = {window.lse, behind - kept.rows(), kept.rows()};
  }
  attend(queries, kv, lse, workspace);
  mlp_after_attention(hidden, queries, workspace);
}

void DecoderLayer::forward_last_row(DeviceView hidden, Position first, AttendedKv& kv,
                                    const Window& window, bool finish_last_row,
                                    LayerWorkspace& workspace) const {
  const DeviceView kept = newest_in_window(window, first, hidden.rows());
  const bool observes = window.observed.moments.rows() > 0;
  const DeviceView last_query = workspace.queries_.rows(finish_last_row ? 1 : 0);
  const DeviceView wanted = observes          ? workspace.queries_.rows(hidden.rows())
                            : kept.rows() > 0 ? kept
                                              : last_query;
  project_heads(hidden, first, wanted, kv, workspace);
  observe(wanted, first, window.observed, workspace);
  if (observes && kept.rows() > 0) {
    backend_->copy(newest_rows(wanted, kept.rows()), kept);
  }
  if (!finish_last_row) {
    return;
  }
  if (observes ? wanted.rows() > 1 : kept.rows() > 0) {
    backend_->copy(newest_rows(wanted, 1), last_query);
  }
  attend(last_query, kv, {}, workspace);
  mlp_after_attention(newest_rows(hidden, 1), last_query, workspace);
}

void DecoderLayer::project(DeviceView rows, const Linear<DeviceView>& linear, DeviceView out,
                           MatmulMode mode) const {
  backend_->matmul(rows, linear.weight, out, {.mode = mode, .phase = phase_, .bias = linear.bias});
}

void DecoderLayer::project_heads(DeviceView hidden, Position first, DeviceView queries,
                                 AttendedKv& kv, LayerWorkspace& workspace) const {
  const auto eps = static_cast<float>(config_->rms_norm_eps);
  const DeviceView normed = workspace.normed_.rows(hidden.rows());
  const DeviceView angles = workspace.angles_.rows(hidden.rows());
  backend_->rms_norm(hidden, weights_->attention_norm, eps, normed);
  backend_->rope_angles(inverse_freq_, first, angles);
  const bool staged = !workspace.staged_.heads().empty();
  AttendedKv& born_in = staged ? workspace.staged_ : kv;
  backend_->project_heads(normed,
                          {.q = weights_->q,
                           .k = weights_->k,
                           .v = weights_->v,
                           .q_norm = weights_->q_norm,
                           .k_norm = weights_->k_norm,
                           .eps = eps,
                           .angles = angles,
                           .pairs = config_->rope.pairs,
                           .phase = phase_},
                          queries, born_in.room(hidden.rows()));
  born_in.advance(hidden.rows());
  if (staged) {
    append_rows(*backend_, workspace.staged_.view(), kv);
  }
}

void DecoderLayer::observe(DeviceView queries, Position first, const ObservedQueries& observed,
                           LayerWorkspace& workspace) const {
  if (observed.moments.rows() == 0) {
    return;
  }
  const std::int64_t skipped = std::max<std::int64_t>(0, observed.first - index_of(first));
  if (skipped < queries.rows()) {
    const std::int64_t count = queries.rows() - skipped;
    backend_->observe_queries(newest_rows(queries, count),
                              workspace.angles_.rows(queries.rows()).rows_at(skipped, count),
                              index_of(first) + skipped - observed.first, observed.moments);
  }
}

void DecoderLayer::attend(DeviceView queries, AttendedKv& kv, const LseColumns& lse,
                          LayerWorkspace& workspace) const {
  const KeyCounts keys = kv.keys_met(0);
  AttentionOptions options{.phase = phase_, .lse = lse};
  if (workspace.mask_) {
    options.mask = workspace.mask_.view(queries.dtype(), queries.rows(), keys.longest_head);
    backend_->causal_mask(options.mask);
  }
  if (workspace.scores_) {
    const std::int64_t group = config_->num_q_heads / config_->num_kv_heads;
    const auto matrix = [&](const Buffer& buffer) {
      return buffer.view(DType::kF32, group * queries.rows(), keys.total);
    };
    options.scores = matrix(workspace.scores_);
    options.weights = matrix(workspace.weights_);
  }
  kv.attend(*backend_, queries, options);
}

void DecoderLayer::mlp_after_attention(DeviceView hidden, DeviceView attended,
                                       LayerWorkspace& workspace) const {
  project(attended, weights_->o, hidden, MatmulMode::kAccumulate);
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
