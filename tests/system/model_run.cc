#include "system/model_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <numeric>
#include <utility>

#include "engine/session.h"

namespace tidekv::testing {
namespace {

template <typename T>
T value_or_exit(Result<T> result) {
  if (!result.ok()) {
    std::cerr << result.error().message << "\n";
    std::exit(1);
  }
  return std::move(result).value();
}

// Copies rows of the device behind what `to` holds.
template <typename View, typename T>
void append_rows(Backend& backend, View rows, std::vector<T>& to) {
  const std::size_t old_size = to.size();
  to.resize(old_size + static_cast<std::size_t>(rows.num_bytes()) / sizeof(T));
  backend.download(rows, std::as_writable_bytes(std::span(to).subspan(old_size)));
}

HeldRows held_rows(Backend& backend, const CompactLayer& cache, std::int64_t end) {
  HeldRows held{end, {}};
  std::vector<std::int32_t> all;
  if (!cache.keeps_all()) {
    append_rows(backend, cache.positions().entries, all);
  }
  auto next = all.begin();
  for (const std::int64_t len : cache.retained_lens()) {
    std::vector<std::int32_t> head(static_cast<std::size_t>(len));
    std::iota(head.begin(), head.end(), 0);
    if (!cache.keeps_all()) {
      std::copy_n(next, len, head.begin());
      next += len;
    }
    held.positions.push_back(std::move(head));
  }
  return held;
}

class CaptureProbe final : public PrefillProbe {
 public:
  CaptureProbe(Backend& backend, std::vector<LayerCapture>& layers, std::int64_t prefix_len)
      : backend_(&backend), layers_(&layers), prefix_len_(prefix_len) {}

  void on_hidden(std::int64_t layer, DeviceView rows) override {
    append_rows(*backend_, rows, at(layer).hidden);
  }
  void on_scores(std::int64_t layer, KeyRange range, DeviceView scores) override {
    std::vector<float>& all = at(layer).scores;
    all.resize(static_cast<std::size_t>(scores.rows() * prefix_len_));
    for (std::int64_t head = 0; head < scores.rows(); ++head) {
      const auto begin = static_cast<std::size_t>(head * prefix_len_ + range.begin);
      const auto row = std::span(all).subspan(begin, static_cast<std::size_t>(range.len()));
      backend_->download(scores.rows_at(head, 1), std::as_writable_bytes(row));
    }
  }
  void on_chunk(std::int64_t layer, const Chunk& chunk, const CompactLayer& compact) override {
    at(layer).after_chunks.push_back(held_rows(*backend_, compact, chunk.begin + chunk.len));
  }
  void on_commit(std::int64_t layer, const CompactLayer& compact) override {
    const std::span<const std::int64_t> lens = compact.retained_lens();
    at(layer).retained_lens.assign(lens.begin(), lens.end());
    if (!compact.keeps_all()) {
      append_rows(*backend_, compact.positions().entries, at(layer).positions);
    }
    compact.for_each_view([&](auto rows) { append_rows(*backend_, rows, at(layer).cache); });
  }

 private:
  LayerCapture& at(std::int64_t layer) { return (*layers_)[static_cast<std::size_t>(layer)]; }

  Backend* backend_;
  std::vector<LayerCapture>* layers_;
  std::int64_t prefix_len_;
};

std::int32_t greedy_token(std::span<const float> logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

void capture_token(Session& session, Backend& backend, std::int64_t end, RunCapture& capture) {
  for (std::int64_t layer = 0; layer < session.cache().num_committed(); ++layer) {
    capture.layers[static_cast<std::size_t>(layer)].after_tokens.push_back(
        held_rows(backend, session.cache().layer(layer), end));
  }
}

Status decode_tokens(Session& session, const RunSetup& setup, std::int64_t count, Backend& backend,
                     RunCapture& capture) {
  for (std::int64_t index = 0; index < count; ++index) {
    if (setup.logits != nullptr) {
      setup.logits->emplace_back(session.logits().begin(), session.logits().end());
    }
    const auto at = static_cast<std::size_t>(index);
    const std::int32_t token =
        at < setup.forced_tokens.size() ? setup.forced_tokens[at] : greedy_token(session.logits());
    capture.tokens.push_back(token);
    if (index + 1 < count) {
      TIDEKV_TRY(session.decode(token));
      if (setup.capture_tokens) {
        capture_token(session, backend, session.cache().shape().prompt_len + index + 1, capture);
      }
    }
  }
  capture.last_logits.assign(session.logits().begin(), session.logits().end());
  return Ok{};
}

std::int64_t prefix_len(const SelectorEntry& selector, const SelectorOptions& options,
                        std::int64_t prompt_len) {
  return prompt_len - selector.create(options)->score_recipe(prompt_len).num_recent;
}

Status run(const ModelContext& model, const std::vector<std::int32_t>& prompt,
           const RunSetup& setup, RunCapture& capture) {
  const auto prompt_len = static_cast<std::int64_t>(prompt.size());
  TIDEKV_ASSIGN(ResolvedRequest request, resolve_request(model, setup.options, prompt_len));
  TIDEKV_ASSIGN(const Plan plan, make_plan(model, request, false));
  ThreadPool pool(setup.num_threads);
  const auto backend = setup.backend->create({.pool = &pool});
  capture.layers.resize(static_cast<std::size_t>(model.config->num_layers));
  CaptureProbe probe(
      *backend, capture.layers,
      prefix_len(*request.session.method.selector, request.session.selector, prompt_len));
  request.session.probe = setup.capture_layers ? &probe : nullptr;
  TIDEKV_ASSIGN(const auto session, Session::create(*backend, request.session));
  TIDEKV_TRY(backend->reserve(plan.memory));
  TIDEKV_TRY(session->prefill(prompt));
  capture.prefill_logits.assign(session->logits().begin(), session->logits().end());
  if (request.session.growth_len > 0) {
    TIDEKV_TRY(session->open_decode());
  }
  TIDEKV_TRY(decode_tokens(*session, setup, request.max_new_tokens, *backend, capture));
  capture.planned_peak = plan.memory.peak;
  capture.measured_peak = backend->accountant().peak();
  capture.reserved_bytes = backend->reserved_bytes();
  EXPECT_EQ(capture.planned_peak, capture.measured_peak) << "plan and run differ";
  return Ok{};
}

// Adds a probe for every cache of the sweep.
std::deque<CaptureProbe> watch_caches(Backend& backend, SessionOptions& session,
                                      std::vector<RunCapture>& captures) {
  std::deque<CaptureProbe> probes;
  const auto watch = [&](const SelectorEntry& selector, const SelectorOptions& options) {
    RunCapture& capture = captures[probes.size()];
    capture.layers.resize(static_cast<std::size_t>(session.config->num_layers));
    probes.emplace_back(backend, capture.layers, prefix_len(selector, options, session.prompt_len));
    return &probes.back();
  };
  session.probe = watch(*session.method.selector, session.selector);
  for (CacheChoice& choice : session.more_caches) {
    choice.probe = watch(*choice.selector, choice.options);
  }
  return probes;
}

Status sweep(const ModelContext& model, const std::vector<std::int32_t>& prompt,
             const RunSetup& setup, const std::vector<SweepTarget>& targets,
             std::vector<RunCapture>& captures) {
  const auto prompt_len = static_cast<std::int64_t>(prompt.size());
  TIDEKV_ASSIGN(PlannedSweep planned, plan_sweep(model, setup.options, targets, prompt_len));
  ThreadPool pool(setup.num_threads);
  const auto backend = setup.backend->create({.pool = &pool});
  std::vector<RunCapture> caches(planned.report.num_caches);
  SessionOptions& options = planned.request.session;
  const std::deque<CaptureProbe> probes = watch_caches(*backend, options, caches);
  TIDEKV_ASSIGN(const auto session, Session::create(*backend, options));
  TIDEKV_TRY(backend->reserve(planned.memory));
  TIDEKV_TRY(session->prefill(prompt));
  if (options.growth_len > 0) {
    TIDEKV_TRY(session->open_decode());
  }
  for (std::size_t cache = 0; cache < caches.size(); ++cache) {
    session->continue_from(cache);
    caches[cache].prefill_logits.assign(session->logits().begin(), session->logits().end());
    TIDEKV_TRY(
        decode_tokens(*session, setup, planned.request.max_new_tokens, *backend, caches[cache]));
    caches[cache].planned_peak = planned.memory.peak;
    caches[cache].measured_peak = backend->accountant().peak();
    caches[cache].reserved_bytes = backend->reserved_bytes();
  }
  EXPECT_EQ(planned.memory.peak, backend->accountant().peak()) << "plan and run differ";
  for (const std::size_t cache : planned.report.cache_of) {
    captures.push_back(caches[cache]);
  }
  return Ok{};
}

}  // namespace

ModelFolder::ModelFolder(const std::string& path)
    : model_(value_or_exit(ModelFile::open(join_path(TIDEKV_SOURCE_DIR, path)))) {}

RunCapture run_model(const ModelFolder& model, const std::vector<std::int32_t>& prompt,
                     const RunSetup& setup) {
  RunCapture capture;
  const Status status =
      run(model.context(*setup.backend, setup.num_threads), prompt, setup, capture);
  if (!status.ok()) {
    ADD_FAILURE() << status.error().message;
  }
  return capture;
}

std::vector<RunCapture> run_model_sweep(const ModelFolder& model,
                                        const std::vector<std::int32_t>& prompt,
                                        const RunSetup& setup,
                                        const std::vector<SweepTarget>& targets) {
  std::vector<RunCapture> captures;
  const Status status =
      sweep(model.context(*setup.backend, setup.num_threads), prompt, setup, targets, captures);
  if (!status.ok()) {
    ADD_FAILURE() << status.error().message;
  }
  return captures;
}

std::vector<std::int32_t> random_prompt(std::int64_t prompt_len, std::int64_t vocab_size,
                                        std::uint64_t seed) {
  constexpr std::int64_t kFirstId = 3;  // after the special tokens of needle and the toys
  std::vector<std::int32_t> ids;
  std::uint64_t state = seed;
  for (std::int64_t index = 0; index < prompt_len; ++index) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    ids.push_back(static_cast<std::int32_t>(
        kFirstId + static_cast<std::int64_t>((state >> 33) %
                                             static_cast<std::uint64_t>(vocab_size - kFirstId))));
  }
  return ids;
}

std::string first_difference(const RunCapture& a, const RunCapture& b) {
  for (std::size_t layer = 0; layer < a.layers.size(); ++layer) {
    const std::string where = " of layer " + std::to_string(layer);
    if (a.layers[layer].hidden != b.layers[layer].hidden) {
      return "hidden states" + where;
    }
    if (a.layers[layer].scores != b.layers[layer].scores) {
      return "scores" + where;
    }
    if (a.layers[layer].positions != b.layers[layer].positions) {
      return "retained positions" + where;
    }
    if (a.layers[layer].cache != b.layers[layer].cache) {
      return "cache bytes" + where;
    }
  }
  if (a.prefill_logits != b.prefill_logits) {
    return "logits";
  }
  if (a.tokens != b.tokens) {
    return "greedy tokens";
  }
  return a.last_logits != b.last_logits ? "logits of the last token" : "";
}

std::vector<const BackendEntry*> available_backends() {
  std::vector<const BackendEntry*> entries;
  for (const BackendEntry& entry : backend_entries()) {
    if (entry.available()) {
      entries.push_back(&entry);
    }
  }
  return entries;
}

}  // namespace tidekv::testing
