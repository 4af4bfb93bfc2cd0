#include <algorithm>
#include <chrono>
#include <utility>

#include "prefill/schedule.h"

namespace tidekv {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

PrefillContext::PrefillContext(Backend& backend, const PrefillRequest& request,
                               DeviceView inverse_freq, HiddenBridge& bridge, CacheManager& cache)
    : backend_(&backend),
      request_(request),
      inverse_freq_(inverse_freq),
      bridge_(&bridge),
      cache_(&cache) {}

Result<ActiveLayer> PrefillContext::open_layer(std::int64_t layer) {
  backend_->accountant().enter(Stage::kPrefill, static_cast<int>(layer));
  const bool keeps = keeps_all(layer);
  return cache_->open_active(keeps ? 0 : request_.recipe.window_len, request_.config->q_dim(),
                             keeps);
}

Result<LayerWorkspace> PrefillContext::open_workspace(std::int64_t layer, std::int64_t chunk_len,
                                                      Mlp mlp) {
  LayerWorkspaceShape shape;
  shape.chunk_len = std::min(chunk_len, prompt_len());
  shape.query_len = only_last_row(layer) ? 1 : shape.chunk_len;
  shape.separate_mlp_product = mlp == Mlp::kAsFramework;
  shape.mlp_tile_len =
      mlp == Mlp::kTiled ? std::min(shape.query_len, kMlpTileLen) : shape.query_len;
  return LayerWorkspace::open(*backend_, *request_.config, cache_->shape().dtype, shape);
}

Status PrefillContext::check_cancelled() const {
  if (backend_->cancelled()) {
    return Error{ErrorCode::kCancelled, "cancelled during prefill"};
  }
  return Ok{};
}

Status PrefillContext::forward_chunk(std::int64_t layer, const Chunk& chunk, ActiveLayer& active,
                                     LayerWorkspace& workspace) {
  TIDEKV_TRY(check_cancelled());
  const auto& weights = request_.model->layers[static_cast<std::size_t>(layer)];
  const DecoderLayer decoder(*backend_, *request_.config, weights, inverse_freq_, Phase::kPrefill);
  const DecoderLayer::Window window{active.window_queries(), active.window_begin()};
  const Position first{static_cast<std::int32_t>(chunk.begin)};
  const bool reaches_end = chunk.begin + chunk.len == prompt_len();
  if (only_last_row(layer)) {
    decoder.forward_last_row(bridge_->slot(chunk), first, active.kv(), window, reaches_end,
                             workspace);
  } else {
    decoder.forward(bridge_->slot(chunk), first, active.kv(), window, workspace);
  }
  TIDEKV_TRY(backend_->synchronize());
  TIDEKV_TRY(check_cancelled());
  if (reaches_end && request_.probe != nullptr) {
    request_.probe->on_hidden(layer, only_last_row(layer) ? bridge_->last_row() : bridge_->rows());
  }
  report_progress(layer, chunk);
  return Ok{};
}

Status PrefillContext::compress_and_commit(std::int64_t layer, ActiveLayer active,
                                           std::int64_t key_block_len) {
  const auto start = std::chrono::steady_clock::now();
  backend_->accountant().enter(Stage::kCompress, static_cast<int>(layer));
  Compressor compressor(*backend_, request_.recipe, request_.config->num_q_heads, key_block_len,
                        request_.probe);
  TIDEKV_TRY(compressor.compress_and_commit(std::move(active), budget_of(layer), *cache_));
  TIDEKV_TRY(backend_->synchronize());
  TIDEKV_TRY(check_cancelled());
  compress_seconds_ += seconds_since(start);
  if (request_.probe != nullptr) {
    request_.probe->on_commit(layer, cache_->layer(layer));
  }
  return Ok{};
}

// Work of the first t rows of a layer grows as t * linear + t^2 * attention.
void PrefillContext::report_progress(std::int64_t layer, const Chunk& chunk) const {
  if (request_.on_progress == nullptr || !*request_.on_progress) {
    return;
  }
  const ModelConfig& config = *request_.config;
  const auto linear =
      static_cast<double>(config.hidden_dim * (2 * config.q_dim() + 2 * config.kv_dim()) +
                          3 * config.hidden_dim * config.ffn_dim);
  const auto attention = static_cast<double>(config.q_dim());
  const auto work = [&](std::int64_t rows) {
    const auto t = static_cast<double>(rows);
    return t * linear + t * t * attention;
  };
  PrefillProgress progress;
  const std::int64_t done = chunk.begin + chunk.len;
  progress.layer = done == prompt_len() ? layer + 1 : layer;
  progress.num_layers = num_layers();
  progress.fraction = (static_cast<double>(layer) + work(done) / work(prompt_len())) /
                      static_cast<double>(num_layers());
  (*request_.on_progress)(progress);
}

}  // namespace tidekv
