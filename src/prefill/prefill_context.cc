#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "prefill/schedule.h"

namespace tidekv {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

PrefillContext::PrefillContext(Backend& backend, const PrefillRequest& request,
                               DeviceView inverse_freq, HiddenBridge& bridge)
    : backend_(&backend), request_(request), inverse_freq_(inverse_freq), bridge_(&bridge) {}

const PrefillTarget* PrefillContext::last_keeper(std::int64_t layer) const {
  const PrefillTarget* last = nullptr;
  for (const PrefillTarget& target : request_.targets) {
    last = target.keeps_rows(layer) ? &target : last;
  }
  return last;
}

Result<ActiveLayer> PrefillContext::open_layer(std::int64_t layer) {
  backend_->accountant().enter(Stage::kPrefill, static_cast<int>(layer));
  return own().cache->open_active(queries_wanted(layer), last_keeper(layer) != nullptr);
}

QueriesWanted PrefillContext::queries_wanted(std::int64_t layer) const {
  QueriesWanted wanted{.q_dim = request_.config->q_dim(), .inverse_freq = inverse_freq_};
  for (const PrefillTarget& target : request_.targets) {
    if (!target.keeps_all(layer)) {
      wanted.window_len = std::max(wanted.window_len, target.recipe.window_len);
    }
    if (!target.keeps_all(layer) && target.recipe.observes_all()) {
      // One set of moments serves all that look at them.
      TIDEKV_CHECK(!wanted.moments || wanted.first == target.recipe.num_sinks);
      wanted.moments = true;
      wanted.first = target.recipe.num_sinks;
    }
  }
  wanted.window_lse = !only_last_row(layer);  // there, attention runs for one row
  return wanted;
}

KeyCounts PrefillContext::keys_met(std::int64_t layer, std::int64_t chunk_len) const {
  const std::int64_t num_heads = request_.config->num_kv_heads;
  if (!by_chunk_) {
    return {prompt_len(), num_heads * prompt_len()};
  }
  const KeyCounts keys = own().cache->growing(layer).keys_met(chunk_len);
  // How long one head is depends on what it held; all together they have as many rows as planned.
  return {heads_differ(layer) ? keys.total : keys.longest_head, keys.total};
}

// Whether heads may differ follows from what happened, not from how long they came out.
bool PrefillContext::heads_differ(std::int64_t layer) const {
  return own().recipe.even_share < 1 && !own().cache->layer(layer).keeps_all();
}

Result<LayerWorkspace> PrefillContext::open_workspace(std::int64_t layer, std::int64_t chunk_len,
                                                      Buffers buffers) {
  LayerWorkspaceShape shape;
  shape.chunk_len = std::min(chunk_len, prompt_len());
  shape.query_len = only_last_row(layer) ? 1 : shape.chunk_len;
  shape.projected_len = queries_wanted(layer).moments ? shape.chunk_len : shape.query_len;
  shape.as_framework = buffers == Buffers::kAsFramework;
  shape.staged = own().cache->staged_storage();
  shape.attention = request_.attention;
  shape.keys = keys_met(layer, shape.chunk_len);
  const std::int64_t own_tile = buffers == Buffers::kTiled ? kMlpTileLen : shape.query_len;
  const std::int64_t tile = request_.mlp_tile_len > 0 ? request_.mlp_tile_len : own_tile;
  shape.mlp_tile_len = std::min(shape.query_len, tile);
  return LayerWorkspace::open(*backend_, *request_.config, own().cache->shape().dtype, shape);
}

Status PrefillContext::check_cancelled() const {
  if (backend_->cancelled()) {
    return Error{ErrorCode::kCancelled, "cancelled during prefill"};
  }
  return Ok{};
}

Status PrefillContext::forward_chunk(std::int64_t layer, const Chunk& chunk, ActiveLayer& active,
                                     LayerWorkspace& workspace) {
  return forward(
      layer, chunk, active.kv(),
      {active.window_queries(), active.window_lse(), active.window_begin(), active.observed()},
      workspace);
}

Status PrefillContext::forward(std::int64_t layer, const Chunk& chunk, AttendedKv& kv,
                               const DecoderLayer::Window& window, LayerWorkspace& workspace) {
  TIDEKV_TRY(check_cancelled());
  const auto& weights = request_.model->layers[static_cast<std::size_t>(layer)];
  const DecoderLayer decoder(*backend_, *request_.config, weights, inverse_freq_, Phase::kPrefill);
  const Position first{static_cast<std::int32_t>(chunk.begin)};
  if (only_last_row(layer)) {
    const bool reaches_end = chunk.begin + chunk.len == prompt_len();
    decoder.forward_last_row(bridge_->slot(chunk), first, kv, window, reaches_end, workspace);
  } else {
    decoder.forward(bridge_->slot(chunk), first, kv, window, workspace);
  }
  TIDEKV_TRY(backend_->synchronize());
  TIDEKV_TRY(check_cancelled());
  show_hidden(layer, chunk);
  report_progress(layer, chunk);
  return Ok{};
}

void PrefillContext::show_hidden(std::int64_t layer, const Chunk& chunk) const {
  const bool reaches_end = chunk.begin + chunk.len == prompt_len();
  for (const PrefillTarget& target : request_.targets) {
    if (target.probe == nullptr) {
      continue;
    }
    if (only_last_row(layer)) {
      if (reaches_end) {
        target.probe->on_hidden(layer, bridge_->last_row());
      }
    } else if (by_chunk_) {
      target.probe->on_hidden(layer, bridge_->slot(chunk));
    } else if (reaches_end) {
      target.probe->on_hidden(layer, bridge_->rows());
    }
  }
}

Status PrefillContext::compress_and_commit(std::int64_t layer, ActiveLayer active,
                                           std::int64_t key_block_len) {
  const auto start = std::chrono::steady_clock::now();
  backend_->accountant().enter(Stage::kCompress, static_cast<int>(layer));
  const PrefillTarget* keeper = last_keeper(layer);
  for (const PrefillTarget& target : request_.targets) {
    if (&target != keeper) {
      Compressor compressor(*backend_, target.recipe, request_.config->num_q_heads, key_block_len,
                            target.probe);
      TIDEKV_TRY(compressor.compress_and_commit(active, target.budget_of(layer), *target.cache));
    }
  }
  if (keeper != nullptr) {  // takes the full KV itself, when nobody else needs it any more
    keeper->cache->commit_all(std::move(active));
  }
  TIDEKV_TRY(backend_->synchronize());
  TIDEKV_TRY(check_cancelled());
  compress_seconds_ += seconds_since(start);
  for (const PrefillTarget& target : request_.targets) {
    if (target.probe != nullptr) {
      target.probe->on_commit(layer, target.cache->layer(layer));
    }
  }
  return Ok{};
}

Status PrefillContext::open_caches() {
  by_chunk_ = true;
  return own().cache->open_all(own().layer_budgets, request_.most_rows);
}

Status PrefillContext::embed(const Chunk& chunk) {
  backend_->accountant().enter(Stage::kPrefill, -1);
  const auto tokens = request_.prompt.subspan(static_cast<std::size_t>(chunk.begin),
                                              static_cast<std::size_t>(chunk.len));
  return bridge_->embed(*backend_, request_.model->embedding, tokens, chunk.begin);
}

bool PrefillContext::has_room(std::int64_t layer, const Chunk& chunk) const {
  const CompactLayer& cached = own().cache->layer(layer);
  return cached.keeps_all() && cached.retained_lens().front() + chunk.len <= own().budget_of(layer);
}

Status PrefillContext::append_chunk(std::int64_t layer, const Chunk& chunk,
                                    LayerWorkspace& workspace) {
  TIDEKV_TRY(forward(layer, chunk, own().cache->growing(layer), {}, workspace));
  own().cache->count_appended(layer, chunk.len);
  show_cache(layer, chunk);
  return Ok{};
}

Result<ActiveLayer> PrefillContext::open_over_cache(std::int64_t layer, const Chunk& chunk) {
  backend_->accountant().enter(Stage::kPrefill, static_cast<int>(layer));
  QueriesWanted wanted = queries_wanted(layer);
  wanted.window_len = std::min(wanted.window_len, chunk.len);
  wanted.first = std::max(wanted.first, chunk.begin);  // of the chunk alone
  return own().cache->open_active_over(
      layer, {.chunk_len = chunk.len, .end = chunk.begin + chunk.len, .wanted = wanted});
}

Status PrefillContext::cut_cache(std::int64_t layer, const ActiveLayer& active,
                                 const Chunk& chunk) {
  const auto start = std::chrono::steady_clock::now();
  backend_->accountant().enter(Stage::kCompress, static_cast<int>(layer));
  Compressor compressor(*backend_, own().recipe, request_.config->num_q_heads, key_block_len(),
                        own().probe);
  TIDEKV_ASSIGN(const Retained slots,
                compressor.select({.kv = active.kv().view(),
                                   .queries = active.window_queries(),
                                   .window_lse = active.window_lse(),
                                   .observed = active.observed(),
                                   .heads_differ = heads_differ(layer)},
                                  own().budget_of(layer), layer, own().cache->cut_lens()));
  own().cache->replace(layer, active, slots, Position{static_cast<std::int32_t>(chunk.begin)});
  TIDEKV_TRY(backend_->synchronize());
  TIDEKV_TRY(check_cancelled());
  compress_seconds_ += seconds_since(start);
  show_cache(layer, chunk);
  return Ok{};
}

void PrefillContext::show_cache(std::int64_t layer, const Chunk& chunk) const {
  if (own().probe == nullptr) {
    return;
  }
  own().probe->on_chunk(layer, chunk, own().cache->layer(layer));
  if (chunk.begin + chunk.len == prompt_len()) {
    own().probe->on_commit(layer, own().cache->layer(layer));
  }
}

// Work of the first t rows grows as t * linear + t^2 * attention, and evenly once what a row sees
// is cut to the budget.
double PrefillContext::work_of(std::int64_t rows) const {
  const ModelConfig& config = *request_.config;
  const auto linear =
      static_cast<double>(config.hidden_dim * (2 * config.q_dim() + 2 * config.kv_dim()) +
                          3 * config.hidden_dim * config.ffn_dim);
  const auto attention = static_cast<double>(config.q_dim());
  const auto t = static_cast<double>(rows);
  const auto most = static_cast<double>(by_chunk_ ? std::min(rows, own().budget_of(0)) : rows);
  return t * linear + (most * most + 2 * most * (t - most)) * attention;
}

void PrefillContext::report_progress(std::int64_t layer, const Chunk& chunk) const {
  if (request_.on_progress == nullptr || !*request_.on_progress) {
    return;
  }
  const std::int64_t done = chunk.begin + chunk.len;
  const auto layers = static_cast<double>(num_layers());
  const auto at = static_cast<double>(layer);
  PrefillProgress progress;
  progress.num_layers = num_layers();
  double work = 0;
  if (by_chunk_) {
    progress.layer = layer + 1;
    const double before = work_of(chunk.begin);
    work = layers * before + (at + 1) * (work_of(done) - before);
  } else {
    progress.layer = done == prompt_len() ? layer + 1 : layer;
    work = at * work_of(prompt_len()) + work_of(done);
  }
  progress.fraction = work / (layers * work_of(prompt_len()));
  (*request_.on_progress)(progress);
}

}  // namespace tidekv
