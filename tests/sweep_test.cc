// One prefill for many caches through the public interface: what each target gives, what the sweep
// needs, and what is refused. That the bits are those of a request for each is
// schedule_fidelity_test.cc's.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include "system/model_run.h"
#include "tidekv/engine.h"

namespace tidekv::testing {
namespace {

Engine load_toy() {
  Result<Engine> engine =
      Engine::load(std::string(TIDEKV_SOURCE_DIR) + "/tests/data/models/toy2", {.num_threads = 2});
  if (!engine.ok()) {
    ADD_FAILURE() << engine.error().message;
    std::abort();
  }
  return std::move(engine).value();
}

class Sweep : public ::testing::Test {
 protected:
  static SweepRequest request() {
    SweepRequest request;
    request.prompt = random_prompt(200, 259, 21);
    request.prefill.chunk_len = 50;
    request.prefill.max_new_tokens = 8;
    request.sampling.temperature = 0;
    request.ignore_eos = true;
    request.digests = true;
    request.targets = {{"tidekv-snap", 64}, {"full", 64}, {"adakv", 64}, {"tova", 40}};
    return request;
  }
  SweepReport sweep(const SweepRequest& request, const Callbacks& callbacks = {}) const {
    Result<SweepReport> report = engine_.sweep(request, callbacks);
    if (!report.ok()) {
      ADD_FAILURE() << report.error().message;
      return {};
    }
    return std::move(report).value();
  }
  Error refusal(const SweepRequest& request, const Callbacks& callbacks = {}) const {
    const Result<SweepReport> report = engine_.sweep(request, callbacks);
    EXPECT_FALSE(report.ok());
    return report.ok() ? Error{} : report.error();
  }
  // The same as a request of its own.
  static Request alone(const SweepRequest& request, std::size_t target) {
    Request one;
    one.prompt = request.prompt;
    one.prefill = request.prefill;
    one.prefill.method = request.targets[target].method;
    one.prefill.budget = request.targets[target].budget;
    one.sampling = request.sampling;
    one.ignore_eos = request.ignore_eos;
    one.digests = request.digests;
    return one;
  }
  void expect_what_requests_give(const SweepRequest& request) const {
    const SweepReport report = sweep(request);
    ASSERT_EQ(report.targets.size(), request.targets.size());
    for (std::size_t i = 0; i < report.targets.size(); ++i) {
      const TargetReport& target = report.targets[i];
      const RunReport expected = engine_.generate(alone(request, i), {}).value();
      EXPECT_EQ(target.tokens, expected.tokens) << request.targets[i].method;
      EXPECT_EQ(target.text, expected.text);
      EXPECT_EQ(target.stop_reason, expected.stop_reason);
      ASSERT_EQ(target.digests.size(), expected.digests.size());
      for (std::size_t layer = 0; layer < expected.digests.size(); ++layer) {
        EXPECT_EQ(target.digests[layer].hidden, expected.digests[layer].hidden);
        EXPECT_EQ(target.digests[layer].positions, expected.digests[layer].positions);
        EXPECT_EQ(target.digests[layer].cache, expected.digests[layer].cache);
        EXPECT_EQ(target.layers[layer].kept, expected.layers[layer].kept);
        EXPECT_EQ(target.layers[layer].kept_by_head, expected.layers[layer].kept_by_head);
      }
    }
  }

  const Engine engine_ = load_toy();
};

TEST_F(Sweep, GivesWhatARequestForEachTargetGives) { expect_what_requests_give(request()); }

TEST_F(Sweep, SamplesEveryTargetWithTheSameSeed) {
  SweepRequest sampled = request();
  sampled.sampling = {.temperature = 1.5F, .seed = 5};
  sampled.targets.push_back({"snapkv", 32});
  expect_what_requests_give(sampled);
}

// The first token comes from full attention: two caches must draw the same, whatever the seed was.
TEST_F(Sweep, DrawsOneSeedForAllWhereNoneIsGiven) {
  SweepRequest sampled = request();
  sampled.sampling = {.temperature = 100.0F, .top_k = 0, .top_p = 1, .min_p = 0, .seed = -1};
  sampled.targets = {{"tova", 40}, {"tova", 41}};
  const SweepReport report = sweep(sampled);
  ASSERT_EQ(report.plan.num_caches, 2U);
  EXPECT_EQ(report.targets[0].tokens.front(), report.targets[1].tokens.front());
}

TEST_F(Sweep, TargetsThatChooseAlikeShareACache) {
  SweepRequest alike = request();
  alike.targets = {{"tidekv-snap", 64}, {"snapkv", 64}, {"tidekv-snap", 65}, {"full", 64},
                   {"snapkv", 200},     {"tova", 1000}, {"tide-noevict", 64}};
  const SweepReport report = sweep(alike);
  EXPECT_EQ(report.plan.cache_of, (std::vector<std::size_t>{0, 0, 1, 2, 2, 2, 2}));
  EXPECT_EQ(report.plan.num_caches, 3U);
  expect_what_requests_give(alike);
}

TEST_F(Sweep, NeedsWhatItsPlanSaysToTheByte) {
  for (const std::int64_t new_tokens : {0, 1, 8}) {
    SweepRequest planned = request();
    planned.prefill.max_new_tokens = new_tokens;
    const SweepPlan plan = engine_.plan_sweep(planned.prefill, planned.targets, 200).value();
    const SweepReport report = sweep(planned);
    EXPECT_EQ(report.memory.peak_bytes, plan.memory.peak_bytes);
    EXPECT_EQ(report.memory.components, plan.memory.components);
    EXPECT_EQ(report.memory.final_cache_bytes, plan.memory.final_cache_bytes);
    EXPECT_EQ(report.memory.reserved_bytes, plan.memory.reserved_bytes);
  }
}

TEST_F(Sweep, SaysWhatEachTargetNeedsAlone) {
  const SweepRequest swept = request();
  const SweepReport report = sweep(swept);
  std::int64_t caches = 0;
  for (std::size_t i = 0; i < swept.targets.size(); ++i) {
    const PlanReport plan = engine_.plan(alone(swept, i).prefill, 200).value();
    EXPECT_EQ(report.plan.alone[i].method, swept.targets[i].method);
    EXPECT_EQ(report.plan.alone[i].memory.peak_bytes, plan.memory.peak_bytes);
    EXPECT_GT(report.memory.peak_bytes, plan.memory.final_cache_bytes);
    caches += plan.memory.final_cache_bytes;
  }
  EXPECT_EQ(report.memory.final_cache_bytes, caches);  // all of them live together
}

TEST_F(Sweep, TakesTheLargestChunkThatFitsTheLimit) {
  SweepRequest limited = request();
  limited.prompt = random_prompt(700, 259, 21);
  limited.prefill.chunk_len = 0;
  limited.prefill.max_new_tokens = 1;
  limited.prefill.key_block_len = 16;  // the peak is that of a chunk, not of a cut
  limited.targets = {{"tidekv-snap", 64}, {"tova", 40}};
  const std::int64_t roomy = sweep(limited).memory.peak_bytes;
  limited.prefill.memory_limit_bytes = roomy - 1;
  const SweepReport tight = sweep(limited);
  EXPECT_LT(tight.plan.chunk_len, 700);
  EXPECT_LT(tight.memory.peak_bytes, roomy);
  limited.prefill.chunk_len = tight.plan.chunk_len + 1;
  EXPECT_FALSE(engine_.plan_sweep(limited.prefill, limited.targets, 700).value().fits);
}

TEST_F(Sweep, IsRefusedBeforeItStartsIfItDoesNotFit) {
  SweepRequest large = request();
  const std::int64_t needed = sweep(large).memory.peak_bytes;
  large.prefill.memory_limit_bytes = needed - 1;
  bool started = false;
  Callbacks callbacks;
  callbacks.on_progress = [&](const Progress&) { started = true; };
  const Error error = refusal(large, callbacks);
  EXPECT_EQ(error.code, ErrorCode::kDoesNotFit);
  EXPECT_NE(error.message.find(std::to_string(needed)), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("4 caches"), std::string::npos) << error.message;
  EXPECT_FALSE(started);
}

TEST_F(Sweep, RefusesTargetsThatNoRequestCouldHave) {
  SweepRequest wrong = request();
  wrong.targets = {};
  EXPECT_NE(refusal(wrong).message.find("expected a method and a budget"), std::string::npos);
  wrong.targets = {{"full", 64}, {"half", 64}};
  EXPECT_NE(refusal(wrong).message.find("'half' is unknown"), std::string::npos);
  wrong.targets = {{"full", 64}, {"snapkv", 31}};
  EXPECT_EQ(refusal(wrong).message,
            "--window 32: snapkv always retains 32 tokens, which exceeds --budget 31; raise the "
            "budget or keep fewer always");
  wrong.prefill.num_sinks = 40;
  wrong.targets = {{"full", 64}, {"tidekv-recent", 31}};
  EXPECT_EQ(refusal(wrong).message.substr(0, 40), "--sinks 40: recent always retains 41 tok");
  wrong.prefill.num_sinks = PrefillOptions::kMethodsSinks;
  for (const char* method : {"block-snap", "full-chunked", "keydiff", "streaming-llm"}) {
    wrong.targets = {{"full", 64}, {method, 64}};
    EXPECT_NE(refusal(wrong).message.find(std::string("--method ") + method + " runs chunk-major"),
              std::string::npos);
  }
  wrong.targets.assign(1001, {"full", 64});
  EXPECT_NE(refusal(wrong).message.find("at most 1000"), std::string::npos);
}

TEST_F(Sweep, OfOneMethodMayTakeEachChunkThroughAllLayers) {
  for (const char* method : {"block-snap", "full-chunked", "keydiff", "streaming-llm"}) {
    SweepRequest one = request();
    one.targets = {{method, 64}};
    EXPECT_FALSE(can_share_prefill(method));
    expect_what_requests_give(one);
    const SweepPlan plan = engine_.plan_sweep(one.prefill, one.targets, 200).value();
    const SweepReport report = sweep(one);
    EXPECT_EQ(report.memory.peak_bytes, plan.memory.peak_bytes) << method;
    EXPECT_EQ(plan.memory.peak_bytes, plan.alone[0].memory.peak_bytes) << method;
  }
  EXPECT_TRUE(can_share_prefill("snapkv"));
  EXPECT_FALSE(can_share_prefill("half"));
}

TEST_F(Sweep, KnowsWhichMethodsHaveNoBudget) {
  for (const char* method :
       {"full", "tide-noevict", "full-chunked", "kivi-2", "kivi-4", "headinfer"}) {
    EXPECT_TRUE(keeps_everything(method)) << method;
  }
  for (const char* method : {"snapkv", "tidekv-recent", "block-snap", "keydiff", "half"}) {
    EXPECT_FALSE(keeps_everything(method)) << method;
  }
}

TEST_F(Sweep, StopsWithinAChunkAndWithinAToken) {
  SweepRequest stopped = request();
  std::atomic<bool> cancel = false;
  Callbacks callbacks;
  callbacks.cancel = &cancel;
  callbacks.on_progress = [&](const Progress&) { cancel = true; };
  EXPECT_EQ(refusal(stopped, callbacks).code, ErrorCode::kCancelled);
  cancel = false;
  callbacks.on_progress = {};
  std::size_t caches = 0;
  callbacks.on_cache = [&](std::size_t index, std::size_t count) {
    EXPECT_EQ(index, caches++);
    EXPECT_EQ(count, 4U);
    cancel = index == 1;
  };
  EXPECT_EQ(refusal(stopped, callbacks).code, ErrorCode::kCancelled);
  EXPECT_EQ(caches, 2U);
}

}  // namespace
}  // namespace tidekv::testing
