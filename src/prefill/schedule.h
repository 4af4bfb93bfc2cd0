// A. When each chunk runs and when KV is dropped. A schedule is one short function over the
// context below; Fig. 1 shows the family.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "cache/cache_manager.h"
#include "compress/compressor.h"
#include "model/config.h"
#include "model/decoder_layer.h"
#include "model/weights.h"
#include "prefill/hidden_bridge.h"

namespace tidekv {

// Looks at a prefill from outside; for digests and tests.
class PrefillProbe : public ScoreProbe {
 public:
  // `rows` left the layer: all prompt rows, or the last one alone after the last layer. Where each
  // chunk goes through all layers, in as many calls as there are chunks.
  virtual void on_hidden(std::int64_t layer, DeviceView rows) = 0;
  virtual void on_commit(std::int64_t layer, const CompactLayer& compact) = 0;
  // Where each chunk goes through all layers: what the layer's cache holds after the chunk.
  virtual void on_chunk(std::int64_t /*layer*/, const Chunk& /*chunk*/,
                        const CompactLayer& /*compact*/) {}
};

struct PrefillProgress {
  std::int64_t layer = 0;  // layers finished, of the prompt or of the chunk that goes through all
  std::int64_t num_layers = 0;
  double fraction = 0;  // of the multiply-adds
};

// A cache to be made: what it retains of every layer, and who looks on.
struct PrefillTarget {
  ScoreRecipe recipe;
  std::span<const std::int64_t> layer_budgets;  // [num_layers]
  CacheManager* cache = nullptr;
  PrefillProbe* probe = nullptr;

  std::int64_t budget_of(std::int64_t layer) const {
    return layer_budgets[static_cast<std::size_t>(layer)];
  }
  bool keeps_all(std::int64_t layer) const { return budget_of(layer) >= cache->shape().prompt_len; }
  // The full KV can become the cache as it is.
  bool keeps_rows(std::int64_t layer) const {
    return keeps_all(layer) && !cache->shape().quantiser;
  }
};

// What a prefill needs to know. References outlive the context.
struct PrefillRequest {
  const ModelConfig* config = nullptr;
  const DeviceModel* model = nullptr;
  std::span<const std::int32_t> prompt;
  // One at least. Where layers are cut when they have seen the whole prompt there may be several:
  // each gets what it would alone.
  std::span<const PrefillTarget> targets;
  std::int64_t most_rows = 0;  // that a cache may be asked to hold
  std::int64_t chunk_len = 0;
  std::int64_t key_block_len = 0;
  std::int64_t mlp_tile_len = 0;  // rows inside the MLP at once; 0: as the buffers have it
  bool all_rows = false;
  AttentionKind attention = AttentionKind::kFlash;
  const std::function<void(const PrefillProgress&)>* on_progress = nullptr;
};

// What a schedule may use.
class PrefillContext {
 public:
  // Activation buffers of a layer.
  enum class Buffers : std::uint8_t {
    kTiled,       // the MLP runs a few hundred rows at once inside the chunk
    kAsFramework  // all rows at once; gate, up and product, keys and values each in full
  };
  static constexpr std::int64_t kMlpTileLen = 256;

  // `inverse_freq` [1, head_dim / 2] f32; `bridge` holds the embedded prompt, or has room for one
  // chunk.
  PrefillContext(Backend& backend, const PrefillRequest& request, DeviceView inverse_freq,
                 HiddenBridge& bridge);

  std::int64_t num_layers() const { return request_.config->num_layers; }
  std::int64_t prompt_len() const { return own().cache->shape().prompt_len; }
  std::int64_t chunk_len() const { return request_.chunk_len; }

  // Full KV of the layer and the observation queries of all targets.
  Result<ActiveLayer> open_layer(std::int64_t layer);
  Result<LayerWorkspace> open_workspace(std::int64_t layer, std::int64_t chunk_len,
                                        Buffers buffers);
  // Runs the chunk through the layer, in its slot of the bridge. kCancelled if asked to stop.
  Status forward_chunk(std::int64_t layer, const Chunk& chunk, ActiveLayer& active,
                       LayerWorkspace& workspace);
  // The layer has seen the whole prompt: every target takes its share of it. Scores keys
  // `key_block_len` at a time.
  Status compress_and_commit(std::int64_t layer, ActiveLayer active, std::int64_t key_block_len);
  std::int64_t key_block_len() const { return request_.key_block_len; }

  // --- for a schedule that takes each chunk through all layers ---

  // Queries that score, where the chunk has as many.
  std::int64_t window_len() const { return own().recipe.window_len; }
  // Every layer's cache, empty.
  Status open_caches();
  // The bridge holds this chunk from now on.
  Status embed(const Chunk& chunk);
  // Whether the layer's cache has room for the chunk within its budget.
  bool has_room(std::int64_t layer, const Chunk& chunk) const;
  // Runs the chunk through the layer, straight into its cache.
  Status append_chunk(std::int64_t layer, const Chunk& chunk, LayerWorkspace& workspace);
  // What the layer's cache holds, and room for the chunk behind it.
  Result<ActiveLayer> open_over_cache(std::int64_t layer, const Chunk& chunk);
  // Of what `active` holds the layer's cache keeps its budget.
  Status cut_cache(std::int64_t layer, const ActiveLayer& active, const Chunk& chunk);

  double compress_seconds() const { return compress_seconds_; }

 private:
  bool only_last_row(std::int64_t layer) const {
    return layer == num_layers() - 1 && !request_.all_rows;
  }
  // The one target, where each chunk goes through all layers; else the first.
  const PrefillTarget& own() const { return request_.targets.front(); }
  // Of the layer's queries, by all targets together.
  QueriesWanted queries_wanted(std::int64_t layer) const;
  // The last target that evicts nothing of the layer and keeps rows; null if there is none.
  const PrefillTarget* last_keeper(std::int64_t layer) const;
  // Those that a chunk's attention may meet in the layer.
  KeyCounts keys_met(std::int64_t layer, std::int64_t chunk_len) const;
  // An earlier cut may have left heads of unequal length.
  bool heads_differ(std::int64_t layer) const;
  Status check_cancelled() const;
  Status forward(std::int64_t layer, const Chunk& chunk, AttendedKv& kv,
                 const DecoderLayer::Window& window, LayerWorkspace& workspace);
  void show_hidden(std::int64_t layer, const Chunk& chunk) const;
  void show_cache(std::int64_t layer, const Chunk& chunk) const;
  // Work of the first rows of a layer, in multiply-adds.
  double work_of(std::int64_t rows) const;
  void report_progress(std::int64_t layer, const Chunk& chunk) const;

  Backend* backend_;
  PrefillRequest request_;
  DeviceView inverse_freq_;
  HiddenBridge* bridge_;
  bool by_chunk_ = false;  // each chunk goes through all layers
  double compress_seconds_ = 0;
};

struct ScheduleEntry {
  std::string_view name;
  // Prefix before the selector's short name, or empty where a method is the selector's own name.
  std::string_view method_prefix;
  Status (*run)(PrefillContext& context);
};

// Alg. 1, Fig. 1(d).
Status run_layer_major(PrefillContext& context);
// Fig. 1(b) and, where budgets do not hold all, (c): each chunk through all layers, then the cut.
Status run_chunk_major(PrefillContext& context);
// Fig. 1(a) with the cut at each layer's end: what post-prefill selectors do.
Status run_one_shot(PrefillContext& context);

std::span<const ScheduleEntry> schedule_entries();

}  // namespace tidekv
