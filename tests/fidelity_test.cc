// Fidelity through the public interface: delayed eviction has the full cache's hidden states bit
// for bit and immediate eviction has not (Table 8); the numbers are those that plain loops over
// whole runs give; and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "backend/registry.h"
#include "system/model_run.h"
#include "tidekv/engine.h"

namespace tidekv::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kPromptLen = 200;
constexpr std::int64_t kChunkLen = 50;
constexpr std::int64_t kBudget = 64;
constexpr const char* kToy = "tests/data/models/toy2";

Engine load_toy() {
  Result<Engine> engine =
      Engine::load(std::string(TIDEKV_SOURCE_DIR) + "/" + kToy, {.num_threads = 2});
  if (!engine.ok()) {
    ADD_FAILURE() << engine.error().message;
    std::abort();
  }
  return std::move(engine).value();
}

bool keeps_everything(const std::string& method) {
  return method == "full" || method == "full-chunked" || method == "tide-noevict" ||
         method == "headinfer";
}

// Keeps every token, in fewer bits.
bool quantises(const std::string& method) { return method.starts_with("kivi-"); }

bool evicts_at_once(const std::string& method) {
  return method.starts_with("block-") || method == "keydiff" || method == "streaming-llm";
}

class Fidelity : public ::testing::Test {
 protected:
  static FidelityRequest request(const std::vector<SweepTarget>& targets) {
    FidelityRequest request;
    request.prompt = random_prompt(kPromptLen, 259, 21);
    request.prefill.chunk_len = kChunkLen;
    request.targets = targets;
    request.num_next = 12;
    return request;
  }
  // Every method there is.
  static FidelityRequest request_of_all() {
    std::vector<SweepTarget> targets;
    for (const std::string& method : method_names()) {
      targets.push_back({method, kBudget});
    }
    return request(targets);
  }
  FidelityReport report(const FidelityRequest& request, const Callbacks& callbacks = {}) const {
    Result<FidelityReport> report = engine_.fidelity(request, callbacks);
    if (!report.ok()) {
      ADD_FAILURE() << report.error().message;
      return {};
    }
    return std::move(report).value();
  }
  Error refusal(const FidelityRequest& request, const Callbacks& callbacks = {}) const {
    const Result<FidelityReport> report = engine_.fidelity(request, callbacks);
    EXPECT_FALSE(report.ok());
    return report.ok() ? Error{} : report.error();
  }

  const Engine engine_ = load_toy();
};

void expect_exact(const Drift& drift) {
  EXPECT_EQ(drift.relative_l2, 0);
  EXPECT_EQ(drift.cosine, 1);
}

// Table 8, the upper rows: the paper's floor is 0.012, ours 0.
TEST_F(Fidelity, WhatIsCutLateIsTheFullCachesBitForBit) {
  const FidelityReport all = report(request_of_all());
  int num_delayed = 0;
  for (const TargetFidelity& target : all.targets) {
    if (evicts_at_once(target.method)) {
      continue;
    }
    SCOPED_TRACE(target.method);
    num_delayed += target.prefill != 0 ? 1 : 0;
    expect_exact(target.hidden);
    ASSERT_EQ(target.layers.size(), 2U);
    std::for_each(target.layers.begin(), target.layers.end(), expect_exact);
    ASSERT_EQ(target.chunks.size(), 4U);
    std::for_each(target.chunks.begin(), target.chunks.end(), expect_exact);
    EXPECT_EQ(target.num_rows, 2 * kPromptLen);
    EXPECT_EQ(target.num_equal_rows, target.num_rows);
    EXPECT_TRUE(target.top1_agrees);
    EXPECT_EQ(target.js_divergence, 0);
    EXPECT_EQ(target.kl_divergence.front(), 0);  // from the prefill
  }
  EXPECT_GE(num_delayed, 8);
}

// Table 8, the lower rows.
TEST_F(Fidelity, WhatIsCutAtOnceDriftsOnceItWasCut) {
  const FidelityReport all = report(request_of_all());
  for (const TargetFidelity& target : all.targets) {
    if (!evicts_at_once(target.method)) {
      continue;
    }
    SCOPED_TRACE(target.method);
    EXPECT_GT(target.hidden.relative_l2, 0);
    EXPECT_LT(target.hidden.cosine, 1);
    EXPECT_GT(target.js_divergence, 0);
    EXPECT_LT(target.num_equal_rows, target.num_rows);
    // The first cut is after the second chunk (of pyramid's smallest layers after the first): until
    // then all has been seen.
    expect_exact(target.chunks[0]);
    if (target.method != "block-pyramid") {
      expect_exact(target.chunks[1]);
    }
    EXPECT_GT(target.chunks[2].relative_l2, 0);
    EXPECT_GT(target.chunks[3].relative_l2, 0);
    EXPECT_GT(target.layers[0].relative_l2, 0);
    EXPECT_GT(target.layers[1].relative_l2, 0);
  }
}

TEST_F(Fidelity, OnlyCachesThatLostSomethingDivergeInWhatComesNext) {
  const FidelityReport all = report(request_of_all());
  for (const TargetFidelity& target : all.targets) {
    ASSERT_EQ(target.kl_divergence.size(), 12U);
    const double most = *std::max_element(target.kl_divergence.begin(), target.kl_divergence.end());
    if (keeps_everything(target.method)) {
      EXPECT_EQ(most, 0) << target.method;
      EXPECT_EQ(target.log_probability, all.log_probability);
    } else {
      EXPECT_GT(most, 0) << target.method;
    }
  }
}

TEST_F(Fidelity, TheHiddenMeanIsThatOfLayersAndOfChunks) {
  const FidelityReport all = report(request({{"block-recent", kBudget}}));
  const TargetFidelity& target = all.targets[0];
  const double by_layer = (target.layers[0].relative_l2 + target.layers[1].relative_l2) / 2;
  double by_chunk = 0;  // four chunks of 50 rows
  for (const Drift& chunk : target.chunks) {
    by_chunk += chunk.relative_l2 / 4;
  }
  EXPECT_DOUBLE_EQ(target.hidden.relative_l2, by_layer);
  EXPECT_NEAR(target.hidden.relative_l2, by_chunk, 1e-12);
}

TEST_F(Fidelity, DelayedMethodsShareAPrefillAndEveryOtherHasItsOwn) {
  const FidelityReport all = report(request({{"tidekv-snap", 64},
                                             {"tide-noevict", 64},
                                             {"tidekv-ada", 40},
                                             {"snapkv", 64},
                                             {"block-snap", 64},
                                             {"block-snap", 40},
                                             {"full-chunked", 64},
                                             {"full", 64}}));
  std::vector<std::size_t> prefills;
  for (const TargetFidelity& target : all.targets) {
    prefills.push_back(target.prefill);
  }
  EXPECT_EQ(prefills, (std::vector<std::size_t>{1, 2, 1, 0, 3, 4, 5, 0}));
  EXPECT_EQ(all.num_prefills, 6U);
}

// Eq. (3): full minus method is what the selector costs and what the schedule costs beside it.
TEST_F(Fidelity, TheScheduleTermOfDelayedEvictionIsNothing) {
  const FidelityReport all = report(request_of_all());
  for (const TargetFidelity& target : all.targets) {
    SCOPED_TRACE(target.method);
    const Eq3Terms& eq3 = target.eq3;
    EXPECT_EQ(eq3.sum, eq3.full_minus_control + eq3.control_minus_method);
    EXPECT_NEAR(eq3.sum, all.log_probability - target.log_probability, 1e-12);
    if (keeps_everything(target.method) || quantises(target.method)) {
      EXPECT_EQ(target.control, "full");
      EXPECT_EQ(eq3.full_minus_control, 0);
    } else {
      EXPECT_NE(eq3.full_minus_control, 0);
    }
    if (evicts_at_once(target.method) || quantises(target.method)) {
      EXPECT_NE(eq3.control_minus_method, 0);
    } else {
      EXPECT_EQ(eq3.control_minus_method, 0);
    }
  }
}

TEST_F(Fidelity, TheControlIsTheMatchedMethodAsItIsAlone) {
  // block-recent has no sinks by itself; its control has the four of recent.
  const FidelityReport all =
      report(request({{"recent", 64}, {"tidekv-recent", 64}, {"block-recent", 64}}));
  for (const TargetFidelity& target : all.targets) {
    EXPECT_EQ(target.control, "recent");
    EXPECT_EQ(target.eq3.full_minus_control, all.targets[0].eq3.sum);
  }
}

TEST_F(Fidelity, RepeatsItselfForAnyNumberOfThreads) {
  const FidelityRequest same = request({{"block-snap", 64}, {"tidekv-snap", 64}});
  const Engine other =
      Engine::load(std::string(TIDEKV_SOURCE_DIR) + "/" + kToy, {.num_threads = 3}).value();
  const FidelityReport one = report(same);
  const FidelityReport two = other.fidelity(same, {}).value();
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(one.targets[i].hidden.relative_l2, two.targets[i].hidden.relative_l2);
    EXPECT_EQ(one.targets[i].kl_divergence, two.targets[i].kl_divergence);
  }
}

// --- against plain loops over whole runs ---

double value_at(const std::vector<std::byte>& bytes, std::size_t index) {
  std::uint32_t bits = 0;
  std::memcpy(reinterpret_cast<std::byte*>(&bits) + 2, bytes.data() + 2 * index, 2);
  float value = 0;
  std::memcpy(&value, &bits, 4);  // BF16, little endian
  return static_cast<double>(value);
}

double plain_relative_l2(const RunCapture& run, const RunCapture& full, std::size_t width) {
  double mean = 0;
  for (std::size_t layer = 0; layer < full.layers.size(); ++layer) {
    for (std::size_t row = 0; row < kPromptLen; ++row) {
      double difference = 0;
      double square = 0;
      for (std::size_t col = 0; col < width; ++col) {
        const double x = value_at(run.layers[layer].hidden, row * width + col);
        const double r = value_at(full.layers[layer].hidden, row * width + col);
        difference += (x - r) * (x - r);
        square += r * r;
      }
      mean += std::sqrt(difference / square);
    }
  }
  return mean / static_cast<double>(full.layers.size() * kPromptLen);
}

std::vector<double> plain_softmax(const std::vector<float>& logits) {
  std::vector<double> p;
  double sum = 0;
  for (const float logit : logits) {
    p.push_back(std::exp(static_cast<double>(logit)));
    sum += p.back();
  }
  for (double& value : p) {
    value /= sum;
  }
  return p;
}

double plain_kl(const std::vector<float>& full, const std::vector<float>& other) {
  const std::vector<double> p = plain_softmax(full);
  const std::vector<double> q = plain_softmax(other);
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    sum += p[i] * std::log(p[i] / q[i]);
  }
  return sum;
}

TEST_F(Fidelity, NumbersAreThoseOfPlainLoopsOverWholeRuns) {
  const std::vector<std::string> methods = {"tidekv-snap", "block-snap", "keydiff"};
  const FidelityRequest asked =
      request({{methods[0], kBudget}, {methods[1], kBudget}, {methods[2], kBudget}});
  const FidelityReport measured = report(asked);
  const ModelFolder model(kToy);
  RunSetup setup;
  setup.backend = choose_backend().value();
  setup.options.all_rows = true;
  setup.options.budget = kBudget;
  setup.options.chunk_len = kChunkLen;
  setup.options.max_new_tokens = 12;
  setup.options.method = "full";
  std::vector<std::vector<float>> full_logits;
  setup.logits = &full_logits;
  const RunCapture full = run_model(model, asked.prompt, setup);
  ASSERT_EQ(measured.continuation, full.tokens);
  for (std::size_t i = 0; i < methods.size(); ++i) {
    SCOPED_TRACE(methods[i]);
    std::vector<std::vector<float>> logits;
    setup.options.method = methods[i];
    setup.forced_tokens = full.tokens;
    setup.logits = &logits;
    const RunCapture run = run_model(model, asked.prompt, setup);
    const TargetFidelity& target = measured.targets[i];
    const double distance =
        plain_relative_l2(run, full, static_cast<std::size_t>(model.config().hidden_dim));
    EXPECT_NEAR(target.hidden.relative_l2, distance, 1e-12);
    ASSERT_EQ(logits.size(), 12U);
    for (std::size_t step = 0; step < logits.size(); ++step) {
      EXPECT_NEAR(target.kl_divergence[step], plain_kl(full_logits[step], logits[step]), 1e-12);
    }
  }
}

// --- what is refused ---

TEST_F(Fidelity, SaysWhyARequestMeasuresNothing) {
  EXPECT_THAT(refusal(request({})).message, HasSubstr("fidelity of nothing"));
  EXPECT_THAT(refusal(request({{"block-half", 64}})).message, HasSubstr("'block-half' is unknown"));
  EXPECT_THAT(refusal(request({{"tidekv-snap", 200}})).message,
              HasSubstr("tidekv-snap would evict nothing; expected a smaller budget"));
  EXPECT_THAT(refusal(request({{"tidekv-snap", 20}})).message, HasSubstr("--window 32"));
  FidelityRequest none_next = request({{"tidekv-snap", 64}});
  none_next.num_next = 0;
  EXPECT_THAT(refusal(none_next).message, HasSubstr("--next 0"));
  FidelityRequest too_many_next = request({{"tidekv-snap", 64}});
  too_many_next.prefill.context_len = 210;
  EXPECT_THAT(refusal(too_many_next).message, HasSubstr("the context has room for 10"));
  FidelityRequest long_prompt = request({{"tidekv-snap", 64}});
  long_prompt.prefill.context_len = 100;
  EXPECT_THAT(refusal(long_prompt).message, HasSubstr("the prompt has 200 tokens"));
  FidelityRequest empty = request({{"tidekv-snap", 64}});
  empty.prompt.clear();
  EXPECT_THAT(refusal(empty).message, HasSubstr("the prompt is empty"));
  FidelityRequest strange = request({{"tidekv-snap", 64}});
  strange.prompt[5] = 259;
  EXPECT_THAT(refusal(strange).message, HasSubstr("prompt token 5 is 259"));
}

TEST_F(Fidelity, TheMemoryLimitHoldsForTheKeptRowsToo) {
  FidelityRequest limited = request({{"tidekv-snap", 64}, {"block-snap", 64}});
  const std::int64_t needed = engine_.plan_fidelity(limited).value();
  limited.prefill.memory_limit_bytes = needed - 1;
  EXPECT_EQ(refusal(limited).code, ErrorCode::kDoesNotFit);
  limited.prefill.memory_limit_bytes = needed;
  const FidelityReport fits = report(limited);
  EXPECT_EQ(fits.peak_bytes, needed);
  // Two layers of 200 rows of 48 BF16 numbers, and 12 distributions over 259 tokens.
  EXPECT_EQ(fits.reference_bytes, 2 * 200 * 48 * 2 + 12 * 259 * 8);
}

TEST_F(Fidelity, StopsInAnyPrefillAndInAnyContinuation) {
  const FidelityRequest all = request({{"tidekv-snap", 64}, {"block-snap", 64}});
  for (std::size_t stopped = 0; stopped < 3; ++stopped) {
    std::atomic<bool> in_prefill = false;
    Callbacks callbacks;
    callbacks.cancel = &in_prefill;
    callbacks.on_run = [&](std::size_t index, std::size_t count, const std::string& method) {
      EXPECT_EQ(count, 3U);
      EXPECT_EQ(method, (std::vector<std::string>{"full", "tidekv-snap", "block-snap"})[index]);
      in_prefill = index == stopped;
    };
    EXPECT_EQ(refusal(all, callbacks).code, ErrorCode::kCancelled);

    std::atomic<bool> in_continuation = false;
    std::size_t run = 0;
    callbacks.cancel = &in_continuation;
    callbacks.on_run = [&](std::size_t index, std::size_t /*count*/, const std::string& /*name*/) {
      run = index;
    };
    callbacks.on_cache = [&](std::size_t /*index*/, std::size_t /*count*/) {
      in_continuation = run == stopped;
    };
    EXPECT_EQ(refusal(all, callbacks).code, ErrorCode::kCancelled);
  }
}

}  // namespace
}  // namespace tidekv::testing
