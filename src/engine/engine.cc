#include "tidekv/engine.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "engine/chat_source.h"
#include "engine/fidelity_planner.h"
#include "engine/fidelity_runner.h"
#include "engine/model_source.h"
#include "engine/sweep_planner.h"
#include "engine/sweep_runner.h"
#include "engine/turn_marks.h"
#include "engine/values_not_exceptions.h"
#include "io/tensor_values.h"

namespace tidekv {
namespace {

// A thread that the system refuses is no want of memory: it is the number asked for.
Result<std::unique_ptr<ThreadPool>> start_threads(int num_threads) {
  try {
    return std::make_unique<ThreadPool>(num_threads);
  } catch (const std::system_error& error) {
    return Error{ErrorCode::kOutOfMemory, "-t " + std::to_string(num_threads) +
                                              ": the system does not start that many threads (" +
                                              error.what() + "); expected fewer"};
  }
}

Result<int> thread_count(const EngineOptions& options) {
  constexpr int kMaxThreads = 1024;
  if (options.num_threads < 0 || options.num_threads > kMaxThreads) {
    return Error{ErrorCode::kInvalidArgument,
                 "-t " + std::to_string(options.num_threads) +
                     ": expected 1 to 1024 threads, or 0 for all CPUs"};
  }
  return options.num_threads == 0 ? default_num_threads() : options.num_threads;
}

ModelInfo describe(const ModelConfig& config, const HostModel& weights) {
  ModelInfo info;
  info.architecture = config.architecture;
  info.weights_type = std::string(name_of(config.dtype.value_or(weights.embedding.dtype)));
  info.num_layers = config.num_layers;
  info.hidden_dim = config.hidden_dim;
  info.ffn_dim = config.ffn_dim;
  info.num_q_heads = config.num_q_heads;
  info.num_kv_heads = config.num_kv_heads;
  info.head_dim = config.head_dim;
  info.vocab_size = config.vocab_size;
  info.max_positions = config.max_positions;
  info.num_parameters = num_parameters(weights);
  info.weights_bytes = weights_bytes(weights);
  info.rope_theta = config.rope.theta;
  info.rope_type = std::string(name_of(config.rope.type));
  info.tied_embeddings = config.tied_embeddings;
  info.eos_token_ids = config.eos_token_ids;
  return info;
}

// A special token has no bytes of its own, but its text can be spelled.
std::int64_t longest_token_bytes(const Tokenizer& tokenizer) {
  std::size_t longest = 0;
  for (std::int64_t index = 0; index < tokenizer.vocab_size(); ++index) {
    const auto id = static_cast<std::int32_t>(index);
    longest = std::max({longest, tokenizer.token_bytes(id).size(),
                        tokenizer.is_special(id) ? tokenizer.token_text(id).size() : 0});
  }
  return static_cast<std::int64_t>(longest);
}

Result<PlanReport> plan_for(const ModelContext& model, const PrefillOptions& options,
                            std::int64_t prompt_len, bool with_timeline) {
  TIDEKV_ASSIGN(const ResolvedRequest request, resolve_request(model, options, prompt_len));
  TIDEKV_ASSIGN(Plan plan, make_plan(model, request, with_timeline));
  return std::move(plan.report);
}

}  // namespace

const char* version() { return TIDEKV_VERSION; }

std::vector<std::string> method_names() {
  std::vector<std::string> names;
  for (const Method& method : all_methods()) {
    names.push_back(method.name);
  }
  return names;
}

bool keeps_everything(const std::string& method) {
  const Result<Method> found = find_method(method);
  return found.ok() && found.value().keeps_everything();
}

std::vector<std::string> shape_names() { return published_shape_names(); }

class Engine::Impl {
 public:
  static Result<std::unique_ptr<Impl>> load(const std::string& path, const EngineOptions& options) {
    TIDEKV_ASSIGN(const int num_threads, thread_count(options));
    TIDEKV_ASSIGN(const BackendEntry* backend, choose_backend());
    if (path.empty()) {  // or the files of the current folder would be read
      return Error{ErrorCode::kInvalidArgument,
                   "-m: the path is empty; expected a model folder or a GGUF file"};
    }
    TIDEKV_ASSIGN(ModelSource source, ModelSource::open(path));
    if (options.check_tensors) {
      TIDEKV_TRY(check_tensor_values(source.model.file));
    }
    TIDEKV_ASSIGN(std::unique_ptr<ThreadPool> pool, start_threads(num_threads));
    auto impl = std::make_unique<Impl>(std::move(source), std::move(pool));
    impl->backend_ = backend;
    impl->info_ = describe(impl->source_.model.config, impl->source_.model.weights);
    impl->info_.path = path;
    impl->info_.longest_token_bytes = longest_token_bytes(impl->tokenizer());
    impl->info_.bos_token_id = impl->tokenizer().bos_token_id();
    impl->info_.backend = std::string(backend->name);
    return impl;
  }

  Impl(ModelSource source, std::unique_ptr<ThreadPool> pool)
      : source_(std::move(source)), pool_(std::move(pool)) {}

  ModelContext model_context() const {
    return {&source_.model.config, &source_.model.weights, backend_, pool_->num_threads()};
  }
  RunContext run_context() { return {model_context(), source_.tokenizer.get(), pool_.get()}; }
  const ModelInfo& info() const { return info_; }
  const ModelSource& source() const { return source_; }
  const Tokenizer& tokenizer() const { return *source_.tokenizer; }

 private:
  ModelSource source_;
  std::unique_ptr<ThreadPool> pool_;
  const BackendEntry* backend_ = nullptr;
  ModelInfo info_;
};

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;
Engine::~Engine() = default;

Result<Engine> Engine::load(const std::string& path, const EngineOptions& options) {
  return values_not_exceptions([&]() -> Result<Engine> {
    TIDEKV_ASSIGN(std::unique_ptr<Impl> impl, Impl::load(path, options));
    return Engine(std::move(impl));
  });
}

const ModelInfo& Engine::model() const { return impl_->info(); }

Result<std::vector<std::int32_t>> Engine::tokenize(std::string_view text,
                                                   const TokenizeOptions& options) const {
  return values_not_exceptions([&] {
    return impl_->tokenizer().encode(
        text, {.add_bos = options.add_bos, .parse_special = options.parse_special});
  });
}

Result<std::vector<std::int32_t>> Engine::tokenize_chat(
    const std::vector<ChatMessage>& messages) const {
  return values_not_exceptions([&]() -> Result<std::vector<std::int32_t>> {
    TIDEKV_ASSIGN(const ChatSource chat, read_chat_source(impl_->info().path, impl_->source()));
    TIDEKV_ASSIGN(const RenderedChat rendered, chat.chat_template.render(messages, chat.options));
    TIDEKV_TRY(check_turn_marks(rendered, impl_->tokenizer()));
    return impl_->tokenizer().encode(
        rendered.text, {.parse_special = true, .protected_ranges = rendered.user_ranges});
  });
}

std::string Engine::token_text(std::int32_t id) const {
  return std::string(impl_->tokenizer().token_text(id));
}

std::string Engine::detokenize(const std::vector<std::int32_t>& ids) const {
  Detokenizer detokenizer(impl_->tokenizer());
  std::string text;
  for (const std::int32_t id : ids) {
    text += detokenizer.next(id);
  }
  return text + detokenizer.finish();
}

Result<PlanReport> Engine::plan(const PrefillOptions& options, std::int64_t prompt_len,
                                bool with_timeline) const {
  return values_not_exceptions(
      [&] { return plan_for(impl_->model_context(), options, prompt_len, with_timeline); });
}

Result<RunReport> Engine::generate(const Request& request, const Callbacks& callbacks) const {
  return values_not_exceptions(
      [&] { return run_request(impl_->run_context(), request, callbacks); });
}

Result<SweepPlan> Engine::plan_sweep(const PrefillOptions& options,
                                     const std::vector<SweepTarget>& targets,
                                     std::int64_t prompt_len) const {
  return values_not_exceptions([&]() -> Result<SweepPlan> {
    TIDEKV_ASSIGN(PlannedSweep planned,
                  tidekv::plan_sweep(impl_->model_context(), options, targets, prompt_len));
    return std::move(planned.report);
  });
}

Result<SweepReport> Engine::sweep(const SweepRequest& request, const Callbacks& callbacks) const {
  return values_not_exceptions([&] { return run_sweep(impl_->run_context(), request, callbacks); });
}

Result<FidelityReport> Engine::fidelity(const FidelityRequest& request,
                                        const Callbacks& callbacks) const {
  return values_not_exceptions(
      [&] { return run_fidelity(impl_->run_context(), request, callbacks); });
}

Result<std::int64_t> Engine::plan_fidelity(const FidelityRequest& request) const {
  return values_not_exceptions([&]() -> Result<std::int64_t> {
    TIDEKV_TRY(check_token_ids(request.prompt, impl_->model_context().config->vocab_size));
    TIDEKV_ASSIGN(const PlannedFidelity planned,
                  tidekv::plan_fidelity(impl_->model_context(), request));
    return planned.peak_bytes;
  });
}

Result<PlanReport> plan_shape(const std::string& shape, const EngineOptions& engine_options,
                              const PrefillOptions& options, std::int64_t prompt_len,
                              bool with_timeline) {
  return values_not_exceptions([&]() -> Result<PlanReport> {
    TIDEKV_ASSIGN(const int num_threads, thread_count(engine_options));
    TIDEKV_ASSIGN(const BackendEntry* backend, choose_backend());
    TIDEKV_ASSIGN(const ModelConfig config, published_shape(shape));
    const HostModel weights = shapes_of(config);
    return plan_for({&config, &weights, backend, num_threads}, options, prompt_len, with_timeline);
  });
}

Result<ModelInfo> shape_info(const std::string& shape) {
  return values_not_exceptions([&]() -> Result<ModelInfo> {
    TIDEKV_ASSIGN(const ModelConfig config, published_shape(shape));
    return describe(config, shapes_of(config));
  });
}

}  // namespace tidekv
