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

// What a session needs; references outlive it.
struct SessionOptions {
  const ModelConfig* config = nullptr;
  const HostModel* weights = nullptr;
  Method method;
  SelectorOptions selector;
  DType dtype = DType::kBF16;
  std::int64_t prompt_len = 0;
  std::int64_t chunk_len = 0;
  std::int64_t key_block_len = 0;
  std::int64_t growth_len = 0;  // tokens that can be fed after the prompt
  bool all_rows = false;
  PrefillProbe* probe = nullptr;
  std::function<void(const PrefillProgress&)> on_progress;
};

class Session {
 public:
  // Host-side state, and the weights' views. Reserve the backend's plan after this: prefill() then
  // allocates nothing outside it.
  static Result<std::unique_ptr<Session>> create(Backend& backend, SessionOptions options);

  // Builds the compact cache and the logits of the prompt's last token.
  Status prefill(std::span<const std::int32_t> prompt);
  // Buffers for decode(); only with growth_len > 0.
  Status open_decode();
  // Steps of decode() that a plan must see: the last is the first that cuts a cache, and those
  // behind it allocate what it does. 0 where steps allocate nothing.
  std::int64_t steps_to_plan() const;
  // Feeds one token at the next position; logits() are then those of its successor.
  Status decode(std::int32_t token);

  std::span<const float> logits() const { return logits_; }
  const CacheManager& cache() const { return cache_; }
  std::span<const std::int64_t> layer_budgets() const { return layer_budgets_; }
  double compress_seconds() const { return compress_seconds_; }

 private:
  Session(Backend& backend, SessionOptions options, DeviceModel model);
  static CacheShape cache_shape(const SessionOptions& options);
  Status run_schedule(HiddenBridge& bridge, std::span<const std::int32_t> prompt);
  // A generated row counts in the layer's budget.
  Status keep_budget(std::int64_t layer);
  void download_logits(DeviceView hidden);

  Backend* backend_;
  SessionOptions options_;
  DeviceModel model_;
  ScoreRecipe recipe_;
  std::vector<std::int64_t> layer_budgets_;
  std::vector<float> inverse_freq_;
  std::vector<float> logits_;
  CacheManager cache_;
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
