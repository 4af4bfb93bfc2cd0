#include "engine/fidelity_runner.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "engine/divergence.h"
#include "engine/fidelity_planner.h"
#include "engine/sampler.h"

namespace tidekv {
namespace {

using Clock = std::chrono::steady_clock;

// What the full cache says next, and how likely it thinks every token at each step.
struct Reference {
  std::vector<std::int32_t> tokens;
  std::vector<std::vector<double>> log_p;  // [num_next][vocab_size]
};

// What a cache thinks of it.
struct Continued {
  bool top1_agrees = true;
  double js_divergence = 0;
  std::vector<double> kl_divergence;
  double log_probability = 0;
};

double log_probability(const Reference& reference) {
  double sum = 0;
  for (std::size_t step = 0; step < reference.tokens.size(); ++step) {
    sum += reference.log_p[step][static_cast<std::size_t>(reference.tokens[step])];
  }
  return sum / static_cast<double>(reference.tokens.size());
}

// The likeliest token each time, also behind an end of text.
Result<Reference> continue_greedily(Session& session, std::int64_t num_next,
                                    std::int64_t vocab_size) {
  Sampler sampler({.temperature = 0}, vocab_size);
  Reference reference;
  for (std::int64_t step = 0; step < num_next; ++step) {
    TIDEKV_ASSIGN(const std::int32_t token, sampler.sample(session.logits(), {}));
    reference.tokens.push_back(token);
    reference.log_p.push_back(log_softmax(session.logits()));
    if (step + 1 < num_next) {
      TIDEKV_TRY(session.decode(token));
    }
  }
  return reference;
}

Result<Continued> follow(Session& session, const Reference& reference) {
  Continued continued;
  for (std::size_t step = 0; step < reference.tokens.size(); ++step) {
    const std::vector<double> log_q = log_softmax(session.logits());
    const std::vector<double>& log_p = reference.log_p[step];
    if (step == 0) {
      continued.top1_agrees = likeliest(log_p) == likeliest(log_q);
      continued.js_divergence = js_divergence(log_p, log_q);
    }
    continued.kl_divergence.push_back(kl_divergence(log_p, log_q));
    continued.log_probability += log_q[static_cast<std::size_t>(reference.tokens[step])];
    if (step + 1 < reference.tokens.size()) {
      TIDEKV_TRY(session.decode(reference.tokens[step]));
    }
  }
  continued.log_probability /= static_cast<double>(reference.tokens.size());
  return continued;
}

// One prefill of a plan: the backend, the session on it, and how long prefill took.
struct LiveRun {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Session> session;
  double prefill_seconds = 0;
};

class FidelityRunner {
 public:
  FidelityRunner(const RunContext& context, const FidelityRequest& request,
                 const Callbacks& callbacks, PlannedFidelity planned)
      : context_(&context),
        request_(&request),
        callbacks_(&callbacks),
        planned_(std::move(planned)),
        rows_(planned_.hidden) {}

  Result<FidelityReport> run() {
    report_.targets.resize(request_->targets.size());
    TIDEKV_TRY(run_reference());
    for (std::size_t run = 1; run < planned_.runs.size(); ++run) {
      TIDEKV_TRY(run_and_compare(run));
    }
    fill_in_terms();
    report_.prompt_len = planned_.hidden.prompt_len;
    report_.chunk_len = planned_.chunk_len;
    report_.compute_type = std::string(name_of(planned_.hidden.dtype));
    report_.continuation = reference_.tokens;
    report_.log_probability = log_probability(reference_);
    report_.reference_bytes = planned_.reference_bytes;
    report_.peak_bytes = planned_.peak_bytes;
    report_.num_prefills = planned_.runs.size();
    return std::move(report_);
  }

 private:
  // Prefills, with the probe that `make_probe` gives for the backend.
  template <typename MakeProbe>
  Result<LiveRun> prefill(std::size_t number, const MakeProbe& make_probe) {
    FidelityRun& run = planned_.runs[number];
    if (callbacks_->on_run) {
      callbacks_->on_run(number, planned_.runs.size(), run.method);
    }
    LiveRun live;
    live.backend = context_->model.backend->create({.pool = context_->pool,
                                                    .fail_allocation = context_->fail_allocation,
                                                    .cancel = callbacks_->cancel});
    run.session.probe = make_probe(*live.backend);
    run.session.on_progress = progress_callback(*callbacks_, planned_.hidden.prompt_len);
    TIDEKV_ASSIGN(live.session, Session::create(*live.backend, run.session));
    TIDEKV_TRY(live.backend->reserve(run.memory));
    const Clock::time_point start = Clock::now();
    TIDEKV_TRY(live.session->prefill(request_->prompt));
    live.prefill_seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (run.session.growth_len > 0) {
      TIDEKV_TRY(live.session->open_decode());
    }
    return live;
  }

  Status run_reference() {
    std::unique_ptr<HiddenRecorder> recorder;
    TIDEKV_ASSIGN(const LiveRun live, prefill(0, [&](Backend& backend) {
                    recorder = std::make_unique<HiddenRecorder>(backend, rows_);
                    return recorder.get();
                  }));
    report_.prefill_seconds = live.prefill_seconds;
    TIDEKV_ASSIGN(reference_, continue_greedily(*live.session, request_->num_next,
                                                context_->model.config->vocab_size));
    TIDEKV_ASSIGN(controls_, follow_caches(*live.session, 0));
    return Ok{};
  }

  Status run_and_compare(std::size_t number) {
    std::unique_ptr<HiddenComparison> comparison;
    TIDEKV_ASSIGN(const LiveRun live, prefill(number, [&](Backend& backend) {
                    comparison =
                        std::make_unique<HiddenComparison>(backend, rows_, planned_.chunk_len);
                    return comparison.get();
                  }));
    TIDEKV_ASSIGN(const std::vector<Continued> continued, follow_caches(*live.session, number));
    for (std::size_t target = 0; target < report_.targets.size(); ++target) {
      const FidelityCache& at = planned_.caches[target];
      if (at.run == number) {
        report_.targets[target].prefill_seconds = live.prefill_seconds;
        comparison->report(report_.targets[target]);
        take(continued[at.cache], report_.targets[target]);
      }
    }
    return Ok{};
  }

  Result<std::vector<Continued>> follow_caches(Session& session, std::size_t number) const {
    std::vector<Continued> all;
    for (std::size_t cache = 0; cache < session.num_caches(); ++cache) {
      if (callbacks_->on_cache) {
        callbacks_->on_cache(cache, session.num_caches());
      }
      // The full cache has gone this way already, and holds rows of it.
      if (number == 0 && cache == 0) {
        all.push_back({.kl_divergence = std::vector<double>(reference_.tokens.size()),
                       .log_probability = log_probability(reference_)});
        continue;
      }
      session.continue_from(cache);
      TIDEKV_ASSIGN(Continued continued, follow(session, reference_));
      all.push_back(std::move(continued));
    }
    return all;
  }

  static void take(const Continued& continued, TargetFidelity& target) {
    target.top1_agrees = continued.top1_agrees;
    target.js_divergence = continued.js_divergence;
    target.kl_divergence = continued.kl_divergence;
    target.log_probability = continued.log_probability;
  }

  // Names, what came from the reference's own prefill, and Eq. (3).
  void fill_in_terms() {
    const HiddenShape& hidden = planned_.hidden;
    for (std::size_t i = 0; i < report_.targets.size(); ++i) {
      TargetFidelity& target = report_.targets[i];
      target.method = request_->targets[i].method;
      target.budget = request_->targets[i].budget;
      target.control = planned_.control_methods[i];
      target.prefill = planned_.caches[i].run;
      if (target.prefill == 0) {
        target.prefill_seconds = report_.prefill_seconds;
        target.layers.resize(static_cast<std::size_t>(hidden.num_layers));
        target.chunks.resize(
            static_cast<std::size_t>((hidden.prompt_len - 1) / planned_.chunk_len + 1));
        target.num_rows = target.num_equal_rows = hidden.num_layers * hidden.prompt_len;
        take(controls_[planned_.caches[i].cache], target);
      }
      const double control = controls_[planned_.controls[i]].log_probability;
      target.eq3.full_minus_control = log_probability(reference_) - control;
      target.eq3.control_minus_method = control - target.log_probability;
      target.eq3.sum = target.eq3.full_minus_control + target.eq3.control_minus_method;
    }
  }

  const RunContext* context_;
  const FidelityRequest* request_;
  const Callbacks* callbacks_;
  PlannedFidelity planned_;
  HiddenRows rows_;
  Reference reference_;
  std::vector<Continued> controls_;  // of every cache of run 0
  FidelityReport report_;
};

}  // namespace

Result<FidelityReport> run_fidelity(const RunContext& context, const FidelityRequest& request,
                                    const Callbacks& callbacks) {
  TIDEKV_TRY(check_token_ids(request.prompt, context.model.config->vocab_size));
  TIDEKV_ASSIGN(PlannedFidelity planned, plan_fidelity(context.model, request));
  return FidelityRunner(context, request, callbacks, std::move(planned)).run();
}

}  // namespace tidekv
