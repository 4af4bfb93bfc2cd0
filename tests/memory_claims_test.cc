// What the paper and this project say about memory, as tests: plan equals run, the ledger equals
// the closed form, one layer holds full KV, Temp does not grow with the prompt.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "system/model_run.h"
#include "tidekv/engine.h"

namespace tidekv::testing {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// Plans for a published shape with two threads; the calling test fails on an error.
PlanReport plan_of(const std::string& shape, const PrefillOptions& options, std::int64_t prompt_len,
                   bool with_timeline = false) {
  Result<PlanReport> report =
      plan_shape(shape, {.num_threads = 2}, options, prompt_len, with_timeline);
  if (!report.ok()) {
    ADD_FAILURE() << report.error().message;
    return {};
  }
  return std::move(report).value();
}

std::int64_t component(const PlanReport& report, const std::string& name) {
  for (const auto& [component_name, bytes] : report.memory.components) {
    if (component_name == name) {
      return bytes;
    }
  }
  ADD_FAILURE() << "no component " << name;
  return 0;
}

// Largest live bytes of one component over a plan's timeline.
std::int64_t peak_of(const PlanReport& report, const std::string& name) {
  std::int64_t live = 0;
  std::int64_t peak = 0;
  for (const TimelineEntry& entry : report.timeline) {
    if (entry.component == name) {
      live += entry.delta_bytes;
      peak = std::max(peak, live);
    }
  }
  return peak;
}

TEST(MemoryClaims, PlanEqualsRunToTheByte) {
  const ModelFolder model("tests/data/models/toy2");
  const std::vector<std::int32_t> prompt = random_prompt(301, model.config().vocab_size, 3);
  for (const BackendEntry* backend : available_backends()) {
    for (const std::string& method : method_names()) {
      for (const std::int64_t chunk_len : {0, 1, 7, 64, 250, 301, 4096}) {
        for (const bool all_rows : {false, true}) {
          RunSetup setup;
          setup.backend = backend;
          setup.num_threads = 3;
          setup.options.method = method;
          setup.options.budget = 90;
          setup.options.chunk_len = chunk_len;
          setup.options.all_rows = all_rows;
          setup.options.max_new_tokens = 5;
          const RunCapture run = run_model(model, prompt, setup);
          EXPECT_GT(run.measured_peak.total(), 0);
          EXPECT_EQ(run.planned_peak, run.measured_peak) << method << ", chunk " << chunk_len;
        }
      }
    }
  }
}

TEST(MemoryClaims, PlanEqualsRunWhateverAttentionHolds) {
  const ModelFolder model("tests/data/models/toy2");
  const std::vector<std::int32_t> prompt = random_prompt(301, model.config().vocab_size, 3);
  for (const std::string& method : method_names()) {
    for (const std::int64_t chunk_len : {7, 64, 301}) {
      for (const AttentionImplementation attention :
           {AttentionImplementation::kMasked, AttentionImplementation::kEager}) {
        RunSetup setup;
        setup.backend = available_backends().back();
        setup.num_threads = 2;
        setup.options.method = method;
        setup.options.budget = 90;
        setup.options.chunk_len = chunk_len;
        setup.options.attention = attention;
        setup.options.max_new_tokens = 3;
        const RunCapture run = run_model(model, prompt, setup);
        EXPECT_EQ(run.planned_peak, run.measured_peak) << method << ", chunk " << chunk_len;
        if (chunk_len == 301 && attention == AttentionImplementation::kEager) {
          EXPECT_GT(run.measured_peak[Component::kAttentionScores], 0) << method;
        }
      }
    }
  }
}

// Table 5a: what implementations of attention hold, at every place in a prompt.
TEST(MemoryClaims, LedgerEqualsFormulaWhateverAttentionHolds) {
  for (const std::string& method : method_names()) {
    for (const std::int64_t prompt_len : {33, 100, 4096, 8192}) {
      for (const std::int64_t chunk_len : {32, 100, 1000, 4000}) {
        for (const AttentionImplementation attention :
             {AttentionImplementation::kMasked, AttentionImplementation::kEager}) {
          PrefillOptions options;
          options.method = method;
          options.budget = prompt_len / 2 + 20;
          options.max_new_tokens = 2;
          options.chunk_len = chunk_len;
          options.attention = attention;
          options.all_rows = chunk_len == 100;
          const PlanReport report = plan_of("llama-3.2-1b", options, prompt_len);
          EXPECT_EQ(report.memory.peak_bytes, report.formula.closed_form_peak_bytes)
              << method << " S=" << prompt_len << " C=" << chunk_len;
        }
      }
    }
  }
}

TEST(MemoryClaims, MaskedHoldsAChunksMaskAndEagerAllItsScores) {
  constexpr std::int64_t kLen = 16384;
  PrefillOptions options;
  options.chunk_len = 2048;
  const auto held = [&](const char* method, AttentionImplementation attention) {
    options.method = method;
    options.attention = attention;
    return peak_of(plan_of("llama-3.1-8b", options, kLen, true), "attention_scores");
  };
  const std::int64_t mask = 2048 * kLen * 2;
  const std::int64_t scores = 32 * 2048 * kLen * 8;  // and what softmax makes of them, f32 both
  EXPECT_EQ(held("tidekv-snap", AttentionImplementation::kFlash), 0);
  EXPECT_EQ(held("tidekv-snap", AttentionImplementation::kMasked), mask);
  EXPECT_EQ(held("tidekv-snap", AttentionImplementation::kEager), mask + scores);
  // A whole prompt has no keys before it: a fused kernel needs no mask.
  EXPECT_EQ(held("snapkv", AttentionImplementation::kMasked), 0);
  EXPECT_EQ(held("snapkv", AttentionImplementation::kEager), 8 * (mask + scores));
  // A prompt attends before it turns into codes.
  EXPECT_EQ(held("kivi-2", AttentionImplementation::kEager), 8 * (mask + scores));
  // Heads that attend alone hold the scores of one of the eight at a time.
  EXPECT_EQ(held("headinfer", AttentionImplementation::kMasked), mask);
  EXPECT_EQ(held("headinfer", AttentionImplementation::kEager), mask + scores / 8);
}

TEST(MemoryClaims, LedgerEqualsFormula) {
  for (const std::string& shape : shape_names()) {
    for (const std::string& method : method_names()) {
      for (const std::int64_t prompt_len : {33, 100, 4096, 8192}) {
        for (const std::int64_t budget : {40, 64, 4096}) {
          for (const std::int64_t new_tokens : {0, 1, 2, 128}) {
            PrefillOptions options;
            options.method = method;
            options.budget = budget;
            options.max_new_tokens = new_tokens;
            options.chunk_len = 1 + prompt_len / 3;
            options.key_block_len = 77;
            options.mlp_tile_len = budget == 40 ? 7 : 0;
            options.num_sinks = 4;
            options.all_rows = new_tokens == 2;
            options.kv_residual_len = budget == 64 ? 64 : 128;
            options.kv_group_len = budget == 40 ? 16 : 0;
            options.compute_type = budget == 64 ? ComputeType::kF32 : ComputeType::kBF16;
            const PlanReport report = plan_of(shape, options, prompt_len);
            EXPECT_EQ(report.memory.peak_bytes, report.formula.closed_form_peak_bytes)
                << shape << " " << method << " S=" << prompt_len << " K=" << budget;
          }
        }
      }
    }
  }
}

TEST(MemoryClaims, AtMostOneLayerHoldsFullKv) {
  PrefillOptions options;
  const PlanReport report = plan_of("llama-3.1-8b", options, 65536, true);
  EXPECT_EQ(peak_of(report, "full_kv"), 2 * 8 * 65536 * 128 * 2);
  EXPECT_GT(report.timeline.size(), 0U);
}

TEST(MemoryClaims, ActivationsAreThoseOfOneChunk) {
  PrefillOptions options;
  options.chunk_len = 512;
  const std::int64_t at_16k = peak_of(plan_of("llama-3.1-8b", options, 16384, true), "activations");
  const std::int64_t at_128k =
      peak_of(plan_of("llama-3.1-8b", options, 131072, true), "activations");
  EXPECT_EQ(at_16k, at_128k);
}

// A control holds gate, up and their product of all its rows, or, tiled, of as many as a tile has.
TEST(MemoryClaims, MlpTileIsWhatAControlHoldsInItsMlp) {
  const auto activations = [&](const char* method, std::int64_t tile) {
    PrefillOptions options;
    options.method = method;
    options.mlp_tile_len = tile;
    return peak_of(plan_of("llama-3.1-8b", options, 65536, true), "activations");
  };
  constexpr std::int64_t kRowBytes = 14336 * 2;
  EXPECT_EQ(activations("snapkv", 0) - activations("snapkv", 256), 3 * (65536 - 256) * kRowBytes);
  EXPECT_EQ(activations("tidekv-snap", 0), activations("tidekv-snap", 256));
  EXPECT_EQ(activations("tidekv-snap", 1024) - activations("tidekv-snap", 0), 768 * kRowBytes);
  EXPECT_EQ(activations("snapkv", 0), activations("snapkv", 1 << 20));
}

TEST(MemoryClaims, TempDoesNotGrowWithPrompt) {
  PrefillOptions options;
  const auto temp = [&](std::int64_t prompt_len) {
    return peak_of(plan_of("llama-3.1-8b", options, prompt_len, true), "compression_temp");
  };
  EXPECT_EQ(temp(16384), temp(131072));
  options.method = "snapkv";  // the dense tensor [H_q, W, S] does grow
  EXPECT_GT(temp(131072), 7 * temp(16384));
}

// FasterDecoding/SnapKV issue 1: a bounded cache says nothing about the peak of building it.
TEST(MemoryClaims, OneMorePromptTokenCostsOneLayersKvAndOneHiddenRow) {
  PrefillOptions options;
  options.max_new_tokens = 1;
  const auto peak = [&](std::int64_t prompt_len) {
    return plan_of("llama-3.1-8b", options, prompt_len).memory.peak_bytes;
  };
  const std::int64_t per_token = 2 * 8 * 128 * 2 + 4096 * 2;
  EXPECT_EQ(peak(131072) - peak(65536), 65536 * per_token);
}

TEST(MemoryClaims, FinalCacheIsTheBudget) {
  const PlanReport report = plan_of("llama-3.1-8b", {}, 65536);
  EXPECT_EQ(report.memory.final_cache_bytes, std::int64_t{512} << 20);  // Table 6: 512 MiB
  for (const LayerRetention& layer : report.layers) {
    EXPECT_EQ(layer.kept, 4096);
    EXPECT_EQ(layer.total, 65536);
  }
}

// At 2 bits in groups of 32, 16-bit scale and minimum: 3 bits an element, whatever the prompt.
TEST(MemoryClaims, QuantisedCacheHoldsItsCodesAndScales) {
  for (const std::int64_t bits : {2, 4}) {
    PrefillOptions options;
    options.method = "kivi-" + std::to_string(bits);
    options.max_new_tokens = 1;
    for (const std::int64_t prompt_len : {100, 4096, 65537}) {
      const PlanReport report = plan_of("llama-3.1-8b", options, prompt_len, true);
      const std::int64_t keys = prompt_len / 128 * 128;
      const std::int64_t values = std::max<std::int64_t>(0, prompt_len - 128);
      const std::int64_t elements = 32 * 8 * (keys + values) * 128;
      EXPECT_EQ(peak_of(report, "packed_codes"), elements * bits / 8);
      EXPECT_EQ(peak_of(report, "packed_scales"), elements / 32 * 4);
      const std::int64_t rows = prompt_len - keys + std::min<std::int64_t>(prompt_len, 128);
      EXPECT_EQ(report.memory.final_cache_bytes,
                elements * bits / 8 + elements / 32 * 4 + 32 * 8 * rows * 128 * 2);
      EXPECT_EQ(peak_of(report, "full_kv"), 2 * 8 * prompt_len * 128 * 2);  // one layer's
    }
  }
}

// Fig. 5: 1.173 GiB against 7.281 GiB at 64K, C = 2048, K = 4096.
TEST(MemoryClaims, TransientOf8bAt64kIsBelowThePapers) {
  PrefillOptions options;
  options.chunk_len = 2048;
  const auto transient_gib = [&](const char* method) {
    options.method = method;
    return static_cast<double>(plan_of("llama-3.1-8b", options, 65536).memory.transient_bytes) /
           kGiB;
  };
  EXPECT_LE(transient_gib("tidekv-snap"), 0.85);
  EXPECT_GE(transient_gib("snapkv"), 7.2);
  EXPECT_LE(transient_gib("snapkv"), 7.3);
}

TEST(MemoryClaims, ReservedBytesAreWithinOnePerMilleOfThePeak) {
  for (const char* method : {"tidekv-snap", "snapkv", "full"}) {
    PrefillOptions options;
    options.method = method;
    const PlanReport report = plan_of("llama-3.1-8b", options, 65536);
    const std::int64_t live = report.memory.peak_bytes - report.memory.weights_bytes;
    EXPECT_GE(report.memory.reserved_bytes, live);
    EXPECT_LE(report.memory.reserved_bytes, live + live / 1000) << method;
  }
}

TEST(MemoryClaims, AutoChunkIsTheLargestThatFits) {
  PrefillOptions options;
  options.max_new_tokens = 1;
  const std::int64_t roomy = plan_of("llama-3.1-8b", options, 65536).memory.peak_bytes;
  options.memory_limit_bytes = roomy - 1;
  const PlanReport tight = plan_of("llama-3.1-8b", options, 65536);
  EXPECT_TRUE(tight.fits);
  EXPECT_LT(tight.chunk_len, 2048);
  EXPECT_LE(tight.memory.peak_bytes, options.memory_limit_bytes);
  options.chunk_len = tight.chunk_len + 1;
  EXPECT_FALSE(plan_of("llama-3.1-8b", options, 65536).fits);
}

TEST(MemoryClaims, LargestPromptFitsAndOneMoreTokenDoesNot) {
  for (const char* method : {"tidekv-snap", "snapkv", "full"}) {
    PrefillOptions options;
    options.method = method;
    options.chunk_len = 1024;
    options.max_new_tokens = 16;
    options.memory_limit_bytes =
        shape_info("llama-3.1-8b").value().weights_bytes + (std::int64_t{700} << 20);
    const std::int64_t largest = plan_of("llama-3.1-8b", options, 1024).max_prompt_len;
    ASSERT_GT(largest, 1024);
    ASSERT_LT(largest, 131072);
    EXPECT_TRUE(plan_of("llama-3.1-8b", options, largest).fits) << method;
    EXPECT_FALSE(plan_of("llama-3.1-8b", options, largest + 1).fits) << method;
  }
}

// Shorter ones than a key block or a chunk among them.
TEST(MemoryClaims, LargestPromptDoesNotDependOnThePromptAsked) {
  for (const char* method : {"snapkv", "tidekv-snap", "block-snap"}) {
    for (const std::int64_t chunk_len : {0, 512}) {
      PrefillOptions options;
      options.method = method;
      options.budget = 64;
      options.chunk_len = chunk_len;
      options.memory_limit_bytes = std::int64_t{16} << 30;
      const std::int64_t largest = plan_of("llama-3.1-8b", options, 1024).max_prompt_len;
      for (const std::int64_t asked : {64, 500, 131072}) {
        EXPECT_EQ(plan_of("llama-3.1-8b", options, asked).max_prompt_len, largest)
            << method << ", asked " << asked << ", chunk " << chunk_len;
      }
    }
  }
}

// ODS issue 3324: KV follows the number of KV heads, not the number of parameters.
TEST(MemoryClaims, KvFollowsTheShapeNotTheParameterCount) {
  PrefillOptions options;
  options.method = "full";
  const std::int64_t qwen2 = component(plan_of("qwen2.5-7b", options, 8192), "compact_cache");
  const std::int64_t mistral =
      component(plan_of("mistral-7b-v0.2", options, 8192), "compact_cache");
  EXPECT_GT(mistral, 2 * qwen2);
}

TEST(MemoryClaims, RunThatDoesNotFitIsRefusedBeforeItStarts) {
  const std::string path = std::string(TIDEKV_SOURCE_DIR) + "/tests/data/models/toy2";
  Result<Engine> engine = Engine::load(path, {.num_threads = 1});
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  Request request;
  request.prompt = random_prompt(200, engine.value().model().vocab_size, 5);
  request.prefill.budget = 64;
  request.prefill.chunk_len = 100;
  request.prefill.memory_limit_bytes = engine.value().model().weights_bytes + 1000;
  bool started = false;
  Callbacks callbacks;
  callbacks.on_progress = [&](const Progress&) { started = true; };
  const Result<RunReport> report = engine.value().generate(request, callbacks);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::kDoesNotFit);
  EXPECT_NE(report.error().message.find("--memory-limit"), std::string::npos);
  EXPECT_FALSE(started);
}

}  // namespace
}  // namespace tidekv::testing
