// KV in the offload pool: bit for bit the full cache's numbers, on the device never more than two
// KV heads, in the pool what the formula says, and every byte that moves counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "system/schedule_fidelity.h"
#include "tidekv/engine.h"

namespace tidekv::testing {
namespace {

constexpr std::int64_t kPromptLen = 301;

const FidelityCase kToy{"tests/data/models/toy2", kPromptLen, 96, {1, 7, 64, 250, 301}};

class HeadInfer : public MethodRuns {
 protected:
  HeadInfer() : MethodRuns(kToy) {}
};

TEST_P(HeadInfer, EqualsTheFullCacheForEveryChunkLength) {
  const RunCapture full = run(setup_of("full", 0));
  ASSERT_EQ(full.tokens.size(), 32U);
  for (const std::int64_t chunk_len : kToy.chunk_lens) {
    EXPECT_EQ(first_difference(full, run(setup_of("headinfer", chunk_len))), "")
        << "chunk " << chunk_len;
  }
}

TEST_P(HeadInfer, LastRowShortcutAndThreadsChangeNothing) {
  const RunCapture full = run(setup_of("full", 0));
  for (const int num_threads : {1, 3, 5}) {
    RunSetup setup = setup_of("headinfer", 64);
    setup.num_threads = num_threads;
    setup.options.all_rows = false;
    RunCapture part = run(setup);
    EXPECT_EQ(part.tokens, full.tokens);
    EXPECT_EQ(part.last_logits, full.last_logits);
    for (std::size_t layer = 0; layer < full.layers.size(); ++layer) {
      EXPECT_EQ(part.layers[layer].cache, full.layers[layer].cache);
    }
  }
}

TEST_P(HeadInfer, ASweepOfItGivesWhatARequestGives) {
  const RunSetup one = setup_of("headinfer", 64);
  const std::vector<RunCapture> swept =
      run_model_sweep(model_, ids_, one, {{"headinfer", kToy.budget}});
  ASSERT_EQ(swept.size(), 1U);
  EXPECT_EQ(first_difference(run(one), swept.front()), "");
}

INSTANTIATE_TEST_SUITE_P(Backends, HeadInfer, every_backend_and_type(), name_of_case);

Request toy_request(const std::string& method) {
  Request request;
  request.prompt = random_prompt(150, 259, 11);
  request.prefill.method = method;
  request.prefill.chunk_len = 40;
  request.prefill.max_new_tokens = 6;
  request.sampling.temperature = 0;
  request.ignore_eos = true;
  request.digests = true;
  return request;
}

Engine load_toy() {
  Result<Engine> engine =
      Engine::load(std::string(TIDEKV_SOURCE_DIR) + "/" + kToy.model, {.num_threads = 2});
  if (!engine.ok()) {
    ADD_FAILURE() << engine.error().message;
    std::abort();
  }
  return std::move(engine).value();
}

// K and V of one token in every head of every layer.
std::int64_t token_bytes(const ModelInfo& model) {
  return model.num_layers * model.num_kv_heads * 2 * model.head_dim * 2;
}

// New rows go down once. A chunk brings up all rows before it, in every layer but the last, of
// which only the last row of the prompt attends; a generated token all rows before it, in every
// layer.
TEST(Offload, CountsEveryTransfer) {
  const Engine engine = load_toy();
  const ModelInfo& model = engine.model();
  const RunReport report = engine.generate(toy_request("headinfer"), {}).value();
  const std::int64_t token = token_bytes(model);
  const std::int64_t layer_token = token / model.num_layers;
  const std::int64_t copies = 2 * model.num_kv_heads;  // of a layer: keys and values of each head
  EXPECT_EQ(report.prefill_transfers.down_bytes, 150 * token);
  EXPECT_EQ(report.prefill_transfers.down_count, 4 * model.num_layers * copies);
  EXPECT_EQ(report.prefill_transfers.up_bytes,
            (40 + 80 + 120) * (model.num_layers - 1) * layer_token + 120 * layer_token);
  EXPECT_EQ(report.prefill_transfers.up_count, (3 * (model.num_layers - 1) + 1) * copies);
  EXPECT_EQ(report.decode_transfers.down_bytes, 5 * token);
  EXPECT_EQ(report.decode_transfers.down_count, 5 * model.num_layers * copies);
  EXPECT_EQ(report.decode_transfers.up_bytes, (150 + 151 + 152 + 153 + 154) * token);
  EXPECT_EQ(report.decode_transfers.up_count, 5 * model.num_layers * copies);
  EXPECT_EQ(report.plan.prefill_transfers, report.prefill_transfers);
}

TEST(Offload, PoolIsTheKvOfAllTokensAndNoPartOfTheDevicesPeak) {
  const Engine engine = load_toy();
  const RunReport report = engine.generate(toy_request("headinfer"), {}).value();
  const RunReport full = engine.generate(toy_request("full"), {}).value();
  EXPECT_EQ(report.tokens, full.tokens);
  for (std::size_t layer = 0; layer < full.digests.size(); ++layer) {
    EXPECT_EQ(report.digests[layer].cache, full.digests[layer].cache);
    EXPECT_EQ(report.digests[layer].positions, full.digests[layer].positions);
  }
  EXPECT_EQ(report.memory.pool_bytes, 155 * token_bytes(engine.model()));
  EXPECT_EQ(report.memory.pool_bytes, report.plan.memory.pool_bytes);
  EXPECT_EQ(report.memory.pool_bytes, report.plan.formula.closed_form_pool_bytes);
  EXPECT_EQ(report.memory.peak_bytes, report.plan.memory.peak_bytes);
  EXPECT_EQ(report.memory.final_cache_bytes, 0);
  EXPECT_EQ(full.memory.pool_bytes, 0);
  EXPECT_EQ(full.prefill_transfers, TransferReport{});
}

// Table 7's model: two heads and a chunk on the device, whatever the prompt has.
TEST(Offload, DeviceHoldsTwoHeadsOfOneLayer) {
  PrefillOptions options;
  options.method = "headinfer";
  options.chunk_len = 2048;
  options.max_new_tokens = 1;
  const PlanReport report =
      plan_shape("llama-3.1-8b", {.num_threads = 2}, options, 131072, true).value();
  for (const auto& [name, bytes] : report.memory.components) {
    if (name == "offload_ring") {
      EXPECT_EQ(bytes, (2 * 131072 + 8 * 2048) * 2 * 128 * 2);
    }
    if (name == "full_kv" || name == "compact_cache" || name == "decode_growth") {
      EXPECT_EQ(bytes, 0) << name;
    }
  }
  EXPECT_EQ(report.memory.pool_bytes, std::int64_t{16} << 30);
}

TEST(Offload, PoolThatIsTooSmallIsRefusedBeforeTheRun) {
  const Engine engine = load_toy();
  Request request = toy_request("headinfer");
  const std::int64_t token = token_bytes(engine.model());
  request.prefill.pool_limit_bytes = 155 * token;
  EXPECT_TRUE(engine.generate(request, {}).ok());
  request.prefill.pool_limit_bytes = 155 * token - 1;
  bool started = false;
  Callbacks callbacks;
  callbacks.on_progress = [&](const Progress&) { started = true; };
  const Result<RunReport> report = engine.generate(request, callbacks);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::kDoesNotFit);
  EXPECT_NE(report.error().message.find("--pool-limit allows"), std::string::npos);
  EXPECT_NE(report.error().message.find("The largest prompt that fits is 149 tokens"),
            std::string::npos)
      << report.error().message;
  EXPECT_FALSE(started);
  const PlanReport plan = engine.plan(request.prefill, 150).value();
  EXPECT_FALSE(plan.fits);
  EXPECT_EQ(plan.max_prompt_len, 149);
  request.prefill.method = "full";  // has no pool
  EXPECT_TRUE(engine.generate(request, {}).ok());
}

}  // namespace
}  // namespace tidekv::testing
