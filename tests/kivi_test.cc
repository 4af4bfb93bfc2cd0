// Methods that quantise the cache: what they hold is what the formula says, answers drift with the
// bits, and neither schedule nor company in a sweep changes a byte.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "system/schedule_fidelity.h"
#include "tidekv/engine.h"

namespace tidekv::testing {
namespace {

constexpr std::int64_t kPromptLen = 301;

const FidelityCase kToy{"tests/data/models/toy2", kPromptLen, 96, {}};

class KiviMethods : public MethodRuns {
 protected:
  KiviMethods() : MethodRuns(kToy) {}

  RunSetup setup_of(const std::string& method, std::int64_t residual_len) const {
    RunSetup run = MethodRuns::setup_of(method, 512);
    run.options.kv_residual_len = residual_len;
    return run;
  }
};

// The prompt attends to rows: bit for bit what `full` computes, up to the first token.
TEST_P(KiviMethods, PrefillIsThatOfTheFullCache) {
  const RunCapture full = run(setup_of("full", 128));
  for (const char* method : {"kivi-2", "kivi-4"}) {
    const RunCapture kivi = run(setup_of(method, 32));
    EXPECT_EQ(kivi.prefill_logits, full.prefill_logits);
    for (std::size_t layer = 0; layer < full.layers.size(); ++layer) {
      EXPECT_EQ(kivi.layers[layer].hidden, full.layers[layer].hidden);
    }
    EXPECT_NE(kivi.last_logits, full.last_logits);
  }
}

// A prompt and an answer within the residual: nothing is a code, and nothing differs.
TEST_P(KiviMethods, ALongResidualIsTheFullCache) {
  RunCapture full = run(setup_of("full", 128));
  RunCapture kivi = run(setup_of("kivi-2", 512));
  EXPECT_EQ(kivi.tokens, full.tokens);
  EXPECT_EQ(kivi.last_logits, full.last_logits);
}

TEST_P(KiviMethods, ThreadsChangeNothing) {
  const RunCapture reference = run(setup_of("kivi-2", 32));
  for (const int num_threads : {1, 3, 5}) {
    RunSetup other = setup_of("kivi-2", 32);
    other.num_threads = num_threads;
    EXPECT_EQ(first_difference(reference, run(other)), "") << num_threads << " threads";
  }
}

// With other caches cut from the same layers, of which one takes the rows themselves.
TEST_P(KiviMethods, ASweepGivesWhatARequestGives) {
  RunSetup shared = setup_of("full", 32);
  const std::vector<SweepTarget> targets = {
      {"kivi-4", 96}, {"full", 96}, {"kivi-2", 96}, {"tidekv-snap", 96}, {"kivi-4", 50}};
  const std::vector<RunCapture> swept = run_model_sweep(model_, ids_, shared, targets);
  ASSERT_EQ(swept.size(), targets.size());
  for (std::size_t index = 0; index < targets.size(); ++index) {
    RunSetup alone = setup_of(targets[index].method, 32);
    EXPECT_EQ(first_difference(run(alone), swept[index]), "") << targets[index].method;
  }
}

// b (T - T mod R) + b max(0, T - R) codes of D elements a head, filled up to words, and two numbers
// of the cache's type for every group.
TEST_P(KiviMethods, HoldsTheBytesOfTheFormula) {
  const ModelConfig& config = model_.config();
  const std::int64_t element = std::get<1>(GetParam()) == ComputeType::kF32 ? 4 : 2;
  for (const std::int64_t bits : {2, 4}) {
    for (const std::int64_t residual : {16, 128, 304}) {
      for (const std::int64_t group : {8, 16}) {
        RunSetup kivi = setup_of("kivi-" + std::to_string(bits), residual);
        kivi.options.kv_group_len = group;
        kivi.options.max_new_tokens = 0;
        const RunCapture capture = run(kivi);
        const std::int64_t keys = kPromptLen - kPromptLen % residual;
        const std::int64_t values = std::max<std::int64_t>(0, kPromptLen - residual);
        const std::int64_t codes = config.num_kv_heads * (keys + values) * config.head_dim;
        const std::int64_t scales = codes / group * 2 * element;
        const std::int64_t rows = kPromptLen - keys + std::min(kPromptLen, residual);
        const std::int64_t row_bytes = config.num_kv_heads * rows * config.head_dim * element;
        for (const LayerCapture& layer : capture.layers) {
          EXPECT_EQ(static_cast<std::int64_t>(layer.cache.size()),
                    codes * bits / 8 + scales + row_bytes);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, KiviMethods, every_backend_and_type(), name_of_case);

// |a - b| / |b| of logits over the vocabulary, their means taken off: no softmax sees those.
double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double mean_a = 0;
  double mean_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    mean_a += static_cast<double>(a[i]) / static_cast<double>(a.size());
    mean_b += static_cast<double>(b[i]) / static_cast<double>(a.size());
  }
  double off = 0;
  double all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]) - mean_a;
    const double y = static_cast<double>(b[i]) - mean_b;
    off += (x - y) * (x - y);
    all += y * y;
  }
  return std::sqrt(off / all);
}

// Mean distance of the logits before each generated token to those of the full cache, which chooses
// the tokens for all.
double drift(const ModelFolder& model, const std::vector<std::int32_t>& ids,
             const std::string& method) {
  RunSetup setup;
  setup.backend = available_backends().front();
  setup.num_threads = 2;
  setup.capture_layers = false;
  setup.options.method = "full";
  setup.options.max_new_tokens = 24;
  setup.options.kv_residual_len = 32;
  std::vector<std::vector<float>> full;
  setup.logits = &full;
  setup.forced_tokens = run_model(model, ids, setup).tokens;
  std::vector<std::vector<float>> quantised;
  setup.logits = &quantised;
  setup.options.method = method;
  run_model(model, ids, setup);
  double sum = 0;
  for (std::size_t token = 1; token < full.size(); ++token) {
    sum += distance(quantised[token], full[token]);
  }
  return sum / static_cast<double>(full.size() - 1);
}

TEST(KiviDrift, FourBitsAreNearTheFullCacheAndTwoFurtherAway) {
  const ModelFolder needle("models/needle");
  const std::vector<std::int32_t> ids = random_prompt(600, needle.config().vocab_size, 5);
  const double four = drift(needle, ids, "kivi-4");
  const double two = drift(needle, ids, "kivi-2");
  EXPECT_GT(four, 0);
  EXPECT_LT(four, 0.1);  // 16 levels over a range of about 4 deviations: 8 % of an element
  EXPECT_GT(two, 2 * four);
  EXPECT_LT(two, 0.5);
}

TEST(KiviOptions, WrongOnesAreRefusedByName) {
  const ModelFolder toy(kToy.model);
  const ModelContext model = toy.context(*available_backends().front(), 1);
  PrefillOptions options;
  options.method = "kivi-4";
  const auto refusal = [&] {
    const Result<ResolvedRequest> request = resolve_request(model, options, 100);
    return request.ok() ? std::string() : request.error().message;
  };
  EXPECT_EQ(refusal(), "");
  options.kv_group_len = 12;
  EXPECT_NE(refusal().find("--kv-group 12: expected a divisor"), std::string::npos);
  options.kv_group_len = -4;
  EXPECT_NE(refusal().find("--kv-group"), std::string::npos);
  options.kv_group_len = 16;
  for (const std::int64_t residual : {0, 8, 40, -16}) {
    options.kv_residual_len = residual;
    EXPECT_NE(refusal().find("--kv-residual " + std::to_string(residual)), std::string::npos);
  }
  options.method = "full";  // reads neither
  EXPECT_EQ(refusal(), "");
}

}  // namespace
}  // namespace tidekv::testing
