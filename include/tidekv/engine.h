// TideKV's front door: load a model, plan a request, run it. Start reading here.
//
//   TIDEKV_ASSIGN(Engine engine, Engine::load("models/needle", {}));
//   Request request;
//   TIDEKV_ASSIGN(request.prompt, engine.tokenize(text, {}));
//   TIDEKV_ASSIGN(RunReport report, engine.generate(request, {}));
//
// An Engine is immutable after loading and may be shared by threads; each request has its own
// state, and requests take turns on the engine's thread pool.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tidekv/chat.h"
#include "tidekv/fidelity.h"
#include "tidekv/memory_report.h"
#include "tidekv/options.h"
#include "tidekv/result.h"
#include "tidekv/sweep.h"

namespace tidekv {

const char* version();  // "0.1.0"

// Names `method` may have, in the order they are documented.
std::vector<std::string> method_names();

// Whether a method keeps every token of the prompt, whatever the budget. False for a name no method
// has.
bool keeps_everything(const std::string& method);

// Shapes plan_shape() knows.
std::vector<std::string> shape_names();

struct ModelInfo {
  std::string path;
  std::string architecture;
  std::string weights_type;  // of most weights: bf16, f16, f32, q4_1, ...
  std::int64_t num_layers = 0;
  std::int64_t hidden_dim = 0;
  std::int64_t ffn_dim = 0;
  std::int64_t num_q_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_positions = 0;
  std::int64_t longest_token_bytes = 0;  // of text; 0 for a shape alone
  std::int64_t num_parameters = 0;
  std::int64_t weights_bytes = 0;
  double rope_theta = 0;
  std::string rope_type;
  bool tied_embeddings = false;
  std::int32_t bos_token_id = -1;
  std::vector<std::int32_t> eos_token_ids;
  std::string backend;  // kernels that will run, e.g. cpu-avx512
};

struct TokenizeOptions {
  bool add_bos = true;
  bool parse_special = false;  // text that spells a special token becomes that token
};

// Where a long prefill stands; given after every chunk.
struct Progress {
  std::int64_t layer = 0;  // layers finished, of the prompt or of the chunk that goes through all
  std::int64_t num_layers = 0;
  double fraction = 0;  // of the prefill's work, 0..1
  double seconds = 0;   // since prefill began
  std::int64_t prompt_len = 0;
};

struct Callbacks {
  std::function<void(const Progress&)> on_progress;
  // Once, after prefill: what the cache kept.
  std::function<void(const std::vector<LayerRetention>&)> on_prefill_done;
  // Generated text as it becomes complete UTF-8.
  std::function<void(std::string_view)> on_text;
  // Of a fidelity comparison: prefill `index` of `count` is about to begin, of this method first.
  std::function<void(std::size_t index, std::size_t count, const std::string& method)> on_run;
  // Of a sweep or a prefill of a comparison: cache `index` of `count` is about to be continued.
  std::function<void(std::size_t index, std::size_t count)> on_cache;
  // Set to true from anywhere to stop within one chunk or token; the request then ends with
  // kCancelled during prefill, or with what was generated so far.
  const std::atomic<bool>* cancel = nullptr;
};

class Engine {
 public:
  // `path`: a Hugging Face folder, or a GGUF file (of a split one, any part). Reads the
  // description, maps the weights, loads the tokenizer.
  static Result<Engine> load(const std::string& path, const EngineOptions& options);

  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  const ModelInfo& model() const;

  Result<std::vector<std::int32_t>> tokenize(std::string_view text,
                                             const TokenizeOptions& options) const;
  // The ids of a conversation in the form the model was trained on, its own chat template's, up to
  // the opening of the assistant's next turn. What the messages say never becomes a special token,
  // so no text can forge a turn; one that holds a turn's mark where that is plain text is refused.
  // An error, too, if the model has no template, or its template refuses the messages.
  Result<std::vector<std::int32_t>> tokenize_chat(const std::vector<ChatMessage>& messages) const;
  // The vocabulary's spelling of one token, for listings.
  std::string token_text(std::int32_t id) const;
  // The text the ids stand for; special tokens are left out.
  std::string detokenize(const std::vector<std::int32_t>& ids) const;

  // What a request with a prompt of this length will need, to the byte. Never loads or computes.
  Result<PlanReport> plan(const PrefillOptions& options, std::int64_t prompt_len,
                          bool with_timeline = false) const;

  // Plans, reserves, runs. kDoesNotFit before any work if the plan exceeds the limit.
  Result<RunReport> generate(const Request& request, const Callbacks& callbacks) const;

  // One prefill for many methods and budgets (tidekv/sweep.h): what sweep() will need, and what
  // each target alone would.
  Result<SweepPlan> plan_sweep(const PrefillOptions& options,
                               const std::vector<SweepTarget>& targets,
                               std::int64_t prompt_len) const;

  // Plans, reserves, prefills once, continues every cache. All or nothing: stopped in between it
  // ends with kCancelled. Calls on_progress and on_cache.
  Result<SweepReport> sweep(const SweepRequest& request, const Callbacks& callbacks) const;

  // How far each target's hidden states and next tokens are from the full cache's
  // (tidekv/fidelity.h). The memory limit holds for the reference's rows and the largest prefill
  // together. All or nothing, as sweep(). Calls on_run, on_progress and on_cache.
  Result<FidelityReport> fidelity(const FidelityRequest& request, const Callbacks& callbacks) const;
  // What fidelity() would say of the request before it runs: an error, or the bytes it needs.
  Result<std::int64_t> plan_fidelity(const FidelityRequest& request) const;

 private:
  class Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The same plan for a published shape; no model file is needed.
Result<PlanReport> plan_shape(const std::string& shape, const EngineOptions& engine_options,
                              const PrefillOptions& options, std::int64_t prompt_len,
                              bool with_timeline = false);

// ModelInfo of a published shape, for showing beside its plan.
Result<ModelInfo> shape_info(const std::string& shape);

}  // namespace tidekv
