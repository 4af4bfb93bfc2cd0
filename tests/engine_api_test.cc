// The public API as an embedding program uses it: requests one after another, side by side, and
// stopped half way.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "system/model_run.h"
#include "tidekv/engine.h"

namespace tidekv::testing {
namespace {

Engine load_toy(int num_threads = 2) {
  Result<Engine> engine = Engine::load(std::string(TIDEKV_SOURCE_DIR) + "/tests/data/models/toy2",
                                       {.num_threads = num_threads});
  if (!engine.ok()) {
    ADD_FAILURE() << engine.error().message;
    std::abort();
  }
  return std::move(engine).value();
}

Request toy_request(std::int64_t prompt_len = 200) {
  Request request;
  request.prompt = random_prompt(prompt_len, 259, 21);
  request.prefill.budget = 64;
  request.prefill.chunk_len = 50;
  request.prefill.max_new_tokens = 8;
  request.sampling.temperature = 0;
  request.ignore_eos = true;
  return request;
}

RunReport run(const Engine& engine, const Request& request, const Callbacks& callbacks = {}) {
  Result<RunReport> report = engine.generate(request, callbacks);
  if (!report.ok()) {
    ADD_FAILURE() << report.error().message;
    return {};
  }
  return std::move(report).value();
}

TEST(Engine, ReportsWhatItKeptGeneratedAndUsed) {
  const Engine engine = load_toy();
  const RunReport report = run(engine, toy_request());
  ASSERT_EQ(report.layers.size(), 2U);
  EXPECT_EQ(report.layers[0].kept, 64);
  EXPECT_EQ(report.layers[0].total, 200);
  EXPECT_EQ(report.generated_tokens, 8);
  EXPECT_EQ(report.stop_reason, "length");
  EXPECT_EQ(report.memory.peak_bytes, report.plan.memory.peak_bytes);
  EXPECT_EQ(report.memory.components, report.plan.memory.components);
  EXPECT_EQ(report.memory.final_cache_bytes, report.plan.memory.final_cache_bytes);
  EXPECT_EQ(report.memory.reserved_bytes, report.plan.memory.reserved_bytes);
  EXPECT_GT(report.ttft_seconds, 0);
  EXPECT_GE(report.ttft_seconds, report.prefill_seconds);
}

TEST(Engine, RequestsSideBySideDoNotDisturbEachOther) {
  const Engine engine = load_toy();
  const std::vector<std::int32_t> expected = run(engine, toy_request()).tokens;
  std::vector<std::thread> threads;
  std::atomic<int> equal{0};
  for (int thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3; ++round) {
        const Result<RunReport> report = engine.generate(toy_request(), {});
        equal += report.ok() && report.value().tokens == expected ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(equal.load(), 9);
}

TEST(Engine, CancelDuringPrefillIsAnErrorAndLeavesTheEngineUsable) {
  const Engine engine = load_toy();
  const std::vector<std::int32_t> expected = run(engine, toy_request()).tokens;
  for (int stop_after = 0; stop_after < 8; ++stop_after) {
    std::atomic<bool> cancel{stop_after == 0};
    int chunks = 0;
    Callbacks callbacks;
    callbacks.cancel = &cancel;
    callbacks.on_progress = [&](const Progress&) {
      ++chunks;
      if (chunks == stop_after) {
        cancel = true;
      }
    };
    const Result<RunReport> report = engine.generate(toy_request(), callbacks);
    ASSERT_FALSE(report.ok()) << stop_after;
    EXPECT_EQ(report.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(chunks, stop_after) << "no chunk may finish after the flag was set";
    EXPECT_EQ(run(engine, toy_request()).tokens, expected);
  }
}

TEST(Engine, CancelFromAnotherThreadStopsALongPrefillQuickly) {
  const Engine engine = load_toy();
  Request request = toy_request(static_cast<std::int64_t>(engine.model().max_positions) - 16);
  request.prefill.method = "snapkv";  // one chunk: only the kernels can stop early
  std::atomic<bool> cancel{false};
  std::thread other([&] { cancel = true; });
  Callbacks callbacks;
  callbacks.cancel = &cancel;
  const Result<RunReport> report = engine.generate(request, callbacks);
  other.join();
  // A quick machine may finish first; what must not happen is anything in between.
  EXPECT_TRUE(report.ok() || report.error().code == ErrorCode::kCancelled);
}

TEST(Engine, CancelDuringDecodeKeepsWhatWasGenerated) {
  const Engine engine = load_toy();
  const std::vector<std::int32_t> expected = run(engine, toy_request()).tokens;
  std::atomic<bool> cancel{false};
  int pieces = 0;
  Callbacks callbacks;
  callbacks.cancel = &cancel;
  callbacks.on_text = [&](std::string_view) { cancel = ++pieces == 2; };
  const RunReport report = run(engine, toy_request(), callbacks);
  EXPECT_EQ(report.stop_reason, "cancelled");
  ASSERT_LT(report.tokens.size(), expected.size());
  EXPECT_TRUE(std::equal(report.tokens.begin(), report.tokens.end(), expected.begin()));
}

TEST(Engine, ProgressRisesToOne) {
  const Engine engine = load_toy();
  double last = 0;
  Callbacks callbacks;
  callbacks.on_progress = [&](const Progress& progress) {
    EXPECT_GT(progress.fraction, last);
    last = progress.fraction;
  };
  run(engine, toy_request(), callbacks);
  EXPECT_NEAR(last, 1.0, 1e-9);
}

TEST(Engine, DigestsAreEqualForEveryScheduleAndDifferForAnotherPrompt) {
  const Engine engine = load_toy();
  const auto digests = [&](const char* method, std::int64_t chunk_len, std::int32_t first_id) {
    Request request = toy_request();
    request.digests = true;
    request.prefill.method = method;
    request.prefill.chunk_len = chunk_len;
    request.prompt[0] = first_id;
    std::vector<std::uint64_t> values;
    for (const LayerDigest& layer : run(engine, request).digests) {
      values.insert(values.end(), {layer.hidden, layer.positions, layer.cache});
    }
    return values;
  };
  const std::vector<std::uint64_t> reference = digests("snapkv", 0, 5);
  EXPECT_EQ(reference.size(), 6U);
  EXPECT_EQ(digests("tidekv-snap", 7, 5), reference);
  EXPECT_EQ(digests("tidekv-snap", 200, 5), reference);
  EXPECT_NE(digests("snapkv", 0, 6), reference);
}

TEST(Engine, RefusesAPromptBeyondTheContextWithBothNumbers) {
  const Engine engine = load_toy();
  const std::int64_t context = engine.model().max_positions;
  const Result<RunReport> report = engine.generate(toy_request(context + 1), {});
  ASSERT_FALSE(report.ok());
  EXPECT_NE(report.error().message.find(std::to_string(context + 1)), std::string::npos);
  EXPECT_NE(report.error().message.find(std::to_string(context) + " ("), std::string::npos);
}

TEST(Engine, RefusesTokenIdsOutsideTheVocabulary) {
  const Engine engine = load_toy();
  for (const std::int32_t id : {-1, 259, 1 << 30}) {
    Request request = toy_request();
    request.prompt[3] = id;
    const Result<RunReport> report = engine.generate(request, {});
    ASSERT_FALSE(report.ok());
    EXPECT_NE(report.error().message.find("prompt token 3"), std::string::npos);
  }
}

TEST(Engine, GenerationEndsWhereTheContextEnds) {
  const Engine engine = load_toy();
  Request request = toy_request(200);
  request.prefill.context_len = 203;
  request.prefill.max_new_tokens = -1;
  const RunReport report = run(engine, request);
  EXPECT_EQ(report.generated_tokens, 3);
  EXPECT_EQ(report.stop_reason, "length");
}

TEST(Engine, UnknownMethodListsTheNames) {
  const Engine engine = load_toy();
  Request request = toy_request();
  request.prefill.method = "snap";
  const Result<RunReport> report = engine.generate(request, {});
  ASSERT_FALSE(report.ok());
  for (const std::string& name : method_names()) {
    EXPECT_NE(report.error().message.find(name), std::string::npos);
  }
}

}  // namespace
}  // namespace tidekv::testing
