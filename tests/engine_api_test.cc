// The public API as an embedding program uses it: requests one after another, side by side, and
// stopped half way.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
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

// A toy model's files in a folder of its own, each of them free to be changed.
class ToyCopy {
 public:
  explicit ToyCopy(const std::string& name) {
    std::string pattern = ::testing::TempDir() + "tidekv_engine_XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
    std::filesystem::copy(std::string(TIDEKV_SOURCE_DIR) + "/tests/data/models/" + name, path_);
  }
  ToyCopy(const ToyCopy&) = delete;
  ToyCopy& operator=(const ToyCopy&) = delete;
  ~ToyCopy() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  // Puts `to` in the place of the first `from`.
  void change(const std::string& file, const std::string& from, const std::string& to) const {
    std::stringstream content;
    content << std::ifstream(path_ + "/" + file).rdbuf();
    std::string text = content.str();
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(path_ + "/" + file) << text.replace(at, from.size(), to);
  }
  std::string error() const {
    const Result<Engine> engine = Engine::load(path_, {.num_threads = 1});
    return engine.ok() ? "loaded" : engine.error().message;
  }

 private:
  std::string path_;
};

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

void expect_cancel_during_prefill(const Engine& engine, const Request& request) {
  const std::vector<std::int32_t> expected = run(engine, request).tokens;
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
    const Result<RunReport> report = engine.generate(request, callbacks);
    ASSERT_FALSE(report.ok()) << stop_after;
    EXPECT_EQ(report.error().code, ErrorCode::kCancelled);
    EXPECT_EQ(chunks, stop_after) << "no chunk may finish after the flag was set";
    EXPECT_EQ(run(engine, request).tokens, expected);
  }
}

TEST(Engine, CancelDuringPrefillIsAnErrorAndLeavesTheEngineUsable) {
  const Engine engine = load_toy();
  for (const char* method : {"tidekv-snap", "block-ada", "keydiff", "full-chunked"}) {
    SCOPED_TRACE(method);
    Request request = toy_request();
    request.prefill.method = method;
    expect_cancel_during_prefill(engine, request);
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
  for (const char* method : {"tidekv-snap", "keydiff"}) {
    Request request = toy_request();
    request.prefill.method = method;
    const std::vector<std::int32_t> expected = run(engine, request).tokens;
    std::atomic<bool> cancel{false};
    int pieces = 0;
    Callbacks callbacks;
    callbacks.cancel = &cancel;
    callbacks.on_text = [&](std::string_view) { cancel = ++pieces == 2; };
    const RunReport report = run(engine, request, callbacks);
    EXPECT_EQ(report.stop_reason, "cancelled") << method;
    ASSERT_LT(report.tokens.size(), expected.size());
    EXPECT_TRUE(std::equal(report.tokens.begin(), report.tokens.end(), expected.begin()));
  }
}

TEST(Engine, ProgressRisesToOne) {
  const Engine engine = load_toy();
  for (const char* method : {"tidekv-snap", "block-snap", "full-chunked", "snapkv"}) {
    double last = 0;
    Callbacks callbacks;
    callbacks.on_progress = [&](const Progress& progress) {
      EXPECT_GT(progress.fraction, last) << method;
      EXPECT_LE(progress.layer, progress.num_layers);
      last = progress.fraction;
    };
    Request request = toy_request();
    request.prefill.method = method;
    run(engine, request, callbacks);
    EXPECT_NEAR(last, 1.0, 1e-9) << method;
  }
}

TEST(Engine, MethodsThatEvictWhileTheyGenerateReportWhatThePromptLeft) {
  const Engine engine = load_toy();
  for (const char* method : {"keydiff", "streaming-llm"}) {
    for (const std::int64_t budget : {64, 203, 1000}) {  // cut in prefill, in decode, never
      Request request = toy_request();
      request.prefill.method = method;
      request.prefill.budget = budget;
      request.timeline = true;
      const RunReport report = run(engine, request);
      EXPECT_EQ(report.layers[1].kept, std::min<std::int64_t>(budget, 200));
      EXPECT_EQ(report.generated_tokens, 8);
      EXPECT_EQ(report.memory.components, report.plan.memory.components);
      EXPECT_EQ(report.memory.final_cache_bytes, report.plan.memory.final_cache_bytes);
      std::int64_t live = 0;
      for (const TimelineEntry& entry : report.timeline) {
        live += entry.delta_bytes;
        ASSERT_EQ(entry.live_bytes, live);
      }
      EXPECT_GT(report.timeline.size(), 50U);
      EXPECT_EQ(report.timeline.back().stage, "decode");
    }
  }
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
  EXPECT_EQ(digests("block-snap", 200, 5), reference);
  EXPECT_NE(digests("block-snap", 50, 5), reference);
  EXPECT_EQ(digests("full-chunked", 7, 5), digests("full", 0, 5));
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

TEST(Engine, TakesTheTypeFromTheWeightsWhereTheConfigNamesNone) {
  for (const char* name : {"toy2", "toy-f16"}) {
    const ToyCopy copy(name);
    const auto loaded = [&] { return Engine::load(copy.path(), {.num_threads = 2}); };
    const Engine named = std::move(loaded()).value();
    copy.change("config.json", "\"torch_dtype\"", "\"unused\"");
    const Engine unnamed = std::move(loaded()).value();
    EXPECT_EQ(unnamed.model().weights_type, named.model().weights_type) << name;
    EXPECT_EQ(run(unnamed, toy_request()).tokens, run(named, toy_request()).tokens) << name;
  }
}

TEST(Engine, NamesTheFileThatLacksATensor) {
  const ToyCopy copy("toy2");
  copy.change("config.json", "\"tie_word_embeddings\": true", "\"tie_word_embeddings\": false");
  EXPECT_EQ(
      copy.error(),
      copy.path() + "/model.safetensors: tensor 'lm_head.weight' is not in it; expected it there");
}

TEST(Engine, SaysWhichTokenIdsTheVocabularyHas) {
  const ToyCopy copy("toy2");
  copy.change("tokenizer.json", "\"added_tokens\": [",
              R"("added_tokens": [{"id": 259, "content": "<x>", "single_word": false,
                 "lstrip": false, "rstrip": false, "normalized": false, "special": true}, )");
  EXPECT_EQ(copy.error(), copy.path() +
                              ": the tokenizer's largest id is 259; expected at most 258, the last "
                              "of the model's 259 tokens");
}

TEST(Engine, RefusesAnEmptyPath) {
  const Result<Engine> engine = Engine::load("", {});
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(engine.error().message,
            "-m: the path is empty; expected a model folder or a GGUF file");
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
