// One request on one backend, step by step: the same code plans (dry-run backend) and runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cache/decode_adapter.h"
#include "engine/method.h"
#include "model/decoder.h"
#include "prefill/schedule.h"

namespace tidekv {

// A further cache that a session cuts from the layers it prefills (a sweep).
struct CacheChoice {
  const SelectorEntry* selector = nullptr;
  SelectorOptions options;
  KvQuantiser quantiser;
  PrefillProbe* probe = nullptr;
};

// What a session needs; references outlive it.
struct SessionOptions {
  const ModelConfig* config = nullptr;
  const HostModel* weights = nullptr;
  Method method;
  SelectorOptions selector;
  KvQuantiser quantiser;  // of the method's cache
  DType dtype = DType::kBF16;
  std::int64_t prompt_len = 0;
  std::int64_t chunk_len = 0;
  std::int64_t key_block_len = 0;
  std::int64_t mlp_tile_len = 0;  // 0: the schedule's own
  std::int64_t growth_len = 0;    // tokens that can be fed after the prompt
  bool all_rows = false;
  AttentionKind attention = AttentionKind::kFlash;
  PrefillProbe* probe = nullptr;
  // Beside the method's own, number 0; only where it chooses at a layer's end.
  std::vector<CacheChoice> more_caches;
  std::function<void(const PrefillProgress&)> on_progress;
};

class Session {
 public:
  // Host-side state, and the weights' views. Reserve the backend's plan after this: prefill() then
  // allocates nothing outside it.
  static Result<std::unique_ptr<Session>> create(Backend& backend, SessionOptions options);

  // Builds the compact caches and the logits of the prompt's last token.
  Status prefill(std::span<const std::int32_t> prompt);
  // Buffers for decode(), which all caches share; only with growth_len > 0.
  Status open_decode();
  // From now on decode() goes on from the prompt's end in this cache, and logits() are the prompt's
  // again. Number 0 comes without a call.
  void continue_from(std::size_t cache);
  // Steps of decode() that a plan must see: the last is the first that cuts a cache, and those
  // behind it allocate what it does. 0 where steps allocate nothing.
  std::int64_t steps_to_plan() const;
  // Feeds one token at the next position; logits() are then those of its successor.
  Status decode(std::int32_t token);

  std::span<const float> logits() const { return logits_; }
  std::size_t num_caches() const { return caches_.size(); }
  const CacheManager& cache(std::size_t index = 0) const { return caches_[index].manager; }
  double compress_seconds() const { return compress_seconds_; }

 private:
  struct Cache {
    std::vector<std::int64_t> layer_budgets;
    CacheManager manager;
  };

  Session(Backend& backend, SessionOptions options, DeviceModel model);
  static CacheShape cache_shape(const SessionOptions& options, const KvQuantiser& quantiser);
  void add_cache(const CacheChoice& choice);
  Status run_schedule(HiddenBridge& bridge, std::span<const std::int32_t> prompt);
  // A generated row counts in the layer's budget.
  Status keep_budget(std::int64_t layer);
  void download_logits(DeviceView hidden);

  Backend* backend_;
  SessionOptions options_;
  DeviceModel model_;
  std::vector<Cache> caches_;           // room for all from the start: targets_ look into it
  std::vector<PrefillTarget> targets_;  // one for each cache
  std::vector<float> inverse_freq_;
  std::vector<float> logits_;
  std::vector<float> prompt_logits_;  // only with several caches
  Buffer panels_;
  Buffer freq_buffer_;
  DeviceView freq_;
  OutputHead head_;
  double compress_seconds_ = 0;

  struct DecodeState {
    DecodeAdapter adapter;
    LayerWorkspace workspace;
    Buffer hidden_buffer;
    Buffer id_buffer;
    std::int64_t first_allocation = 0;  // of a step
  };
  std::optional<DecodeState> decode_;
};

}  // namespace tidekv
