#include "engine/session.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace tidekv {
namespace {

// Generated rows a cache has room for beside its budget.
std::int64_t growth_rows(const SessionOptions& options) {
  if (!options.method.cuts_in_decode) {
    return options.growth_len;
  }
  const std::int64_t free = std::max<std::int64_t>(0, options.selector.budget - options.prompt_len);
  return std::min(options.growth_len, free + 1);  // one row too many is cut at once
}

}  // namespace

CacheShape Session::cache_shape(const SessionOptions& options, const KvQuantiser& quantiser) {
  return {.num_layers = options.config->num_layers,
          .num_kv_heads = options.config->num_kv_heads,
          .head_dim = options.config->head_dim,
          .dtype = options.dtype,
          .prompt_len = options.prompt_len,
          .growth_len = growth_rows(options),
          .quantiser = quantiser,
          .offload_chunk_len = options.method.offloads ? options.chunk_len : 0};
}

Session::Session(Backend& backend, SessionOptions options, DeviceModel model)
    : backend_(&backend),
      options_(std::move(options)),
      model_(std::move(model)),
      inverse_freq_(rope_inverse_frequencies(options_.config->rope, options_.config->head_dim)),
      logits_(static_cast<std::size_t>(options_.config->vocab_size)) {
  TIDEKV_CHECK(options_.more_caches.empty() || options_.method.chooses_at_layer_end());
  caches_.reserve(1 + options_.more_caches.size());
  targets_.reserve(caches_.capacity());
  add_cache({options_.method.selector, options_.selector, options_.quantiser, options_.probe});
  for (const CacheChoice& choice : options_.more_caches) {
    add_cache(choice);
  }
  prompt_logits_.resize(num_caches() > 1 ? logits_.size() : 0);
}

void Session::add_cache(const CacheChoice& choice) {
  const auto selector = choice.selector->create(choice.options);
  caches_.push_back(
      {std::vector<std::int64_t>(static_cast<std::size_t>(options_.config->num_layers)),
       CacheManager(*backend_, cache_shape(options_, choice.quantiser))});
  Cache& cache = caches_.back();
  selector->layer_budgets(options_.prompt_len, cache.layer_budgets);
  targets_.push_back({.recipe = selector->score_recipe(options_.prompt_len),
                      .layer_budgets = cache.layer_budgets,
                      .cache = &cache.manager,
                      .probe = choice.probe});
}

Result<std::unique_ptr<Session>> Session::create(Backend& backend, SessionOptions options) {
  TIDEKV_ASSIGN(DeviceModel model, import_weights(backend, *options.weights));
  return std::unique_ptr<Session>(new Session(backend, std::move(options),
                                              std::move(model)));  // private constructor
}

Status Session::prefill(std::span<const std::int32_t> prompt) {
  TIDEKV_CHECK_OP(prompt.size(), ==, options_.prompt_len);
  const ModelConfig& config = *options_.config;
  const std::int64_t panel_bytes = backend_->workspace_bytes(config.head_dim);
  TIDEKV_ASSIGN(panels_, backend_->allocate({{Component::kKernelPanels, panel_bytes}}));
  backend_->use_workspace(panels_.view(DType::kF32, 1, panel_bytes / size_of(DType::kF32)));

  const std::int64_t half = config.head_dim / 2;
  TIDEKV_ASSIGN(freq_buffer_,
                backend_->allocate({{Component::kActivations, half * size_of(DType::kF32)}}));
  freq_ = freq_buffer_.view(DType::kF32, 1, half);
  backend_->upload(std::as_bytes(std::span(inverse_freq_)), freq_);
  TIDEKV_ASSIGN(head_, OutputHead::open(*backend_, config, options_.dtype));

  const bool by_chunk = options_.method.by_chunk();
  TIDEKV_ASSIGN(
      HiddenBridge bridge,
      HiddenBridge::open(*backend_, options_.dtype,
                         by_chunk ? options_.chunk_len : options_.prompt_len, config.hidden_dim));
  if (!by_chunk) {
    TIDEKV_TRY(bridge.embed(*backend_, model_.embedding, prompt, 0));
  }
  TIDEKV_TRY(run_schedule(bridge, prompt));
  download_logits(bridge.last_row());
  TIDEKV_TRY(backend_->synchronize());
  if (backend_->cancelled()) {
    return Error{ErrorCode::kCancelled, "cancelled during prefill"};
  }
  std::copy_n(logits_.begin(), prompt_logits_.size(), prompt_logits_.begin());
  return Ok{};
}

Status Session::run_schedule(HiddenBridge& bridge, std::span<const std::int32_t> prompt) {
  const std::int64_t generated = options_.method.cuts_in_decode ? options_.growth_len : 0;
  const PrefillRequest request{.config = options_.config,
                               .model = &model_,
                               .prompt = prompt,
                               .targets = targets_,
                               .most_rows = options_.prompt_len + generated,
                               .chunk_len = options_.chunk_len,
                               .key_block_len = options_.key_block_len,
                               .mlp_tile_len = options_.mlp_tile_len,
                               .all_rows = options_.all_rows,
                               .attention = options_.attention,
                               .on_progress = &options_.on_progress};
  PrefillContext context(*backend_, request, freq_, bridge);
  Status status = options_.method.schedule->run(context);
  compress_seconds_ = context.compress_seconds();
  return status;
}

Status Session::open_decode() {
  const ModelConfig& config = *options_.config;
  TIDEKV_CHECK_OP(options_.growth_len, >, 0);
  backend_->accountant().enter(Stage::kDecode, -1);
  TIDEKV_ASSIGN(LayerWorkspace workspace,
                LayerWorkspace::open(
                    *backend_, config, options_.dtype,
                    {.chunk_len = 1, .query_len = 1, .projected_len = 1, .mlp_tile_len = 1}));
  TIDEKV_ASSIGN(
      Buffer hidden,
      backend_->allocate({{Component::kActivations, config.hidden_dim * size_of(options_.dtype)}}));
  TIDEKV_ASSIGN(Buffer id, backend_->allocate({{Component::kActivations, size_of(DType::kI32)}}));
  decode_.emplace(DecodeState{DecodeAdapter(caches_.front().manager, options_.growth_len),
                              std::move(workspace), std::move(hidden), std::move(id),
                              backend_->next_allocation()});
  return Ok{};
}

void Session::continue_from(std::size_t cache) {
  TIDEKV_CHECK_OP(cache, <, num_caches());
  std::copy(prompt_logits_.begin(), prompt_logits_.end(), logits_.begin());
  if (decode_) {
    decode_->adapter = DecodeAdapter(caches_[cache].manager, options_.growth_len);
  }
}

std::int64_t Session::steps_to_plan() const {
  return options_.method.cuts_in_decode ? cache().shape().growth_len : 0;
}

Status Session::decode(std::int32_t token) {
  TIDEKV_CHECK(decode_.has_value() && decode_->adapter.has_room());
  const ModelConfig& config = *options_.config;
  backend_->repeat_allocations_from(decode_->first_allocation);
  const DeviceView id = decode_->id_buffer.view(DType::kI32, 1, 1);
  const DeviceView hidden = decode_->hidden_buffer.view(options_.dtype, 1, config.hidden_dim);
  backend_->upload(std::as_bytes(std::span(&token, 1)), id);
  backend_->embed(model_.embedding, id, hidden);
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    const DecoderLayer decoder(*backend_, config, model_.layers[static_cast<std::size_t>(layer)],
                               freq_, Phase::kDecode);
    decoder.forward(hidden, decode_->adapter.next_position(), decode_->adapter.layer(layer), {},
                    decode_->workspace);
    decode_->adapter.settle(*backend_, layer);
    if (options_.method.cuts_in_decode) {
      TIDEKV_TRY(keep_budget(layer));
    }
  }
  decode_->adapter.advance();
  download_logits(hidden);
  TIDEKV_TRY(backend_->synchronize());
  if (backend_->cancelled()) {
    return Error{ErrorCode::kCancelled, "cancelled during decode"};
  }
  return Ok{};
}

Status Session::keep_budget(std::int64_t layer) {
  const PrefillTarget& own = targets_.front();
  const KvView kv = own.cache->layer(layer).kv().view();
  const std::int64_t budget = own.budget_of(layer);
  if (kv.heads.front().len <= budget) {
    own.cache->count_appended(layer, 1);
    return Ok{};
  }
  Compressor compressor(*backend_, own.recipe, options_.config->num_q_heads, options_.key_block_len,
                        nullptr);
  TIDEKV_ASSIGN(const Retained slots,
                compressor.select({.kv = kv, .queries = {}}, budget, layer, own.cache->cut_lens()));
  own.cache->keep(layer, slots, decode_->adapter.next_position());
  return Ok{};
}

void Session::download_logits(DeviceView hidden) {
  const DeviceView row = head_.logits(*backend_, *options_.config, model_, hidden);
  backend_->download(row, std::as_writable_bytes(std::span(logits_)));
}

}  // namespace tidekv
