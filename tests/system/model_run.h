// Runs a model through the engine's own session and keeps what tests compare: bits, not summaries.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/registry.h"
#include "engine/sweep_planner.h"
#include "model/model_file.h"

namespace tidekv::testing {

// A model folder or GGUF file: config and mapped weights, without a tokenizer.
class ModelFolder {
 public:
  // Ends the test program with the error if it cannot be read. `path` is relative to the source
  // tree.
  explicit ModelFolder(const std::string& path);

  const ModelConfig& config() const { return model_.config; }
  const HostModel& weights() const { return model_.weights; }
  ModelContext context(const BackendEntry& backend, int num_threads) const {
    return {&model_.config, &model_.weights, &backend, num_threads};
  }

 private:
  ModelFile model_;
};

// What a layer's cache held after one chunk, or after one generated token.
struct HeldRows {
  std::int64_t end = 0;                              // tokens seen
  std::vector<std::vector<std::int32_t>> positions;  // one vector per KV head
};

// What one layer produced, as raw values in canonical order.
struct LayerCapture {
  std::vector<std::byte> hidden;            // rows that left the layer
  std::vector<float> scores;                // [num_kv_heads, prefix]; empty if nothing was scored
  std::vector<std::int64_t> retained_lens;  // [num_kv_heads]
  std::vector<std::int32_t> positions;      // head by head; empty if nothing was evicted
  std::vector<std::byte> cache;             // keys by head, then values
  std::vector<HeldRows> after_chunks;       // where each chunk goes through all layers
  std::vector<HeldRows> after_tokens;       // of each generated token that was fed
};

struct RunCapture {
  std::vector<LayerCapture> layers;
  std::vector<float> prefill_logits;
  std::vector<std::int32_t> tokens;  // greedy
  std::vector<float> last_logits;    // of which the last token was chosen
  ComponentBytes planned_peak;
  ComponentBytes measured_peak;
  std::int64_t reserved_bytes = 0;
};

struct RunSetup {
  const BackendEntry* backend = nullptr;
  int num_threads = 1;
  PrefillOptions options;  // max_new_tokens greedy tokens are generated
  bool capture_layers = true;
  std::vector<std::int32_t> forced_tokens;  // fed instead of the greedy choice, while they last
  std::vector<std::vector<float>>* logits = nullptr;  // if set: logits before each token
  bool capture_tokens = false;                        // fill LayerCapture::after_tokens
};

// Plans, reserves, prefills, decodes. Errors end the calling test with a failure and an empty
// capture.
RunCapture run_model(const ModelFolder& model, const std::vector<std::int32_t>& prompt,
                     const RunSetup& setup);

// The same for every target of one sweep, whose prefill they share. The peaks are the sweep's.
std::vector<RunCapture> run_model_sweep(const ModelFolder& model,
                                        const std::vector<std::int32_t>& prompt,
                                        const RunSetup& setup,
                                        const std::vector<SweepTarget>& targets);

// Deterministic token ids in [first_id, vocab).
std::vector<std::int32_t> random_prompt(std::int64_t prompt_len, std::int64_t vocab_size,
                                        std::uint64_t seed);

// Index of the first difference of two captures, in words; "" if they are equal bit for bit.
std::string first_difference(const RunCapture& a, const RunCapture& b);

// Every backend this machine can run.
std::vector<const BackendEntry*> available_backends();

}  // namespace tidekv::testing
