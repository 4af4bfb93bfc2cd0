// What stays, beside kvpress: the same positions in every layer and KV head, but for near ties,
// since both compute in float32. tools/reference/make_kvpress_fixtures.py wrote what kvpress keeps.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "system/model_run.h"

namespace tidekv::testing {
namespace {

using Json = nlohmann::json;

Json read_json(const std::string& file) {
  std::ifstream stream(std::string(TIDEKV_SOURCE_DIR "/tests/data/reference/") + file);
  return Json::parse(stream);
}

std::string delayed_method(const std::string& press) {
  for (const SelectorEntry& entry : selector_entries()) {
    if (entry.name == press) {
      return "tidekv-" + std::string(entry.short_name);
    }
  }
  return press;
}

// A hexadecimal number: bit i from the left says whether position i was kept.
bool was_kept(const std::string& bits, std::int32_t position) {
  const int digit = std::stoi(bits.substr(static_cast<std::size_t>(position / 4), 1), nullptr, 16);
  return (digit >> (3 - position % 4) & 1) != 0;
}

std::vector<std::int32_t> kept_by_kvpress(const std::string& bits) {
  std::vector<std::int32_t> positions;
  for (std::int32_t position = 0; position < static_cast<std::int32_t>(bits.size() * 4);
       ++position) {
    if (was_kept(bits, position)) {
      positions.push_back(position);
    }
  }
  return positions;
}

// Elements that both have; they may repeat.
std::int64_t num_common(std::vector<std::int32_t> a, std::vector<std::int32_t> b) {
  std::vector<std::int32_t> common;
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  return static_cast<std::int64_t>(common.size());
}

// The tokens at those positions. In the first layer a key's length depends on its token alone:
// equal tokens tie, and rounding decides which of them stay.
std::vector<std::int32_t> tokens_at(const std::vector<std::int32_t>& positions,
                                    const std::vector<std::int32_t>& ids) {
  std::vector<std::int32_t> tokens;
  for (const std::int32_t position : positions) {
    tokens.push_back(ids[static_cast<std::size_t>(position)]);
  }
  return tokens;
}

RunSetup as_kvpress(const Json& one) {
  RunSetup setup;
  setup.backend = available_backends().front();
  setup.num_threads = 2;
  setup.options.method = delayed_method(one.at("press").get<std::string>());
  setup.options.budget = one.at("budget").get<std::int64_t>();
  setup.options.budget_split = BudgetSplit::kKvpress;
  setup.options.window_len = 64;
  setup.options.kernel_len = 5;
  setup.options.pooling = Pooling::kAverage;
  setup.options.unit_len = 20;
  setup.options.compute_type = ComputeType::kF32;
  setup.options.max_new_tokens = 0;
  return setup;
}

// At least 99 of 100 positions in common, in every layer and head.
void expect_kept_as_by_kvpress(const Json& one, const std::vector<std::int32_t>& ids,
                               const RunCapture& run) {
  const Json& layers = one.at("kept");
  ASSERT_EQ(run.layers.size(), layers.size());
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    auto next = run.layers[layer].positions.begin();
    for (std::size_t head = 0; head < layers[layer].size(); ++head) {
      std::vector<std::int32_t> ours(next, next + run.layers[layer].retained_lens.at(head));
      next += run.layers[layer].retained_lens.at(head);
      std::vector<std::int32_t> theirs = kept_by_kvpress(layers[layer][head].get<std::string>());
      const auto most = static_cast<std::int64_t>(std::max(ours.size(), theirs.size()));
      if (layer == 0 && one.at("press") == "knorm") {
        ours = tokens_at(ours, ids);
        theirs = tokens_at(theirs, ids);
      }
      const std::int64_t common = num_common(ours, theirs);
      EXPECT_GE(100 * common, 99 * most)
          << "layer " << layer << ", head " << head << ": " << common << " of " << most;
    }
  }
}

void expect_kvpress_keeps_the_same_of(const std::string& model_name, const std::string& path) {
  const ModelFolder model(path);
  const Json all = read_json("kvpress.json");
  int num_cases = 0;
  for (const Json& prompt : all.at("prompts")) {
    if (prompt.at("model") != model_name) {
      continue;
    }
    const Json fixture = read_json(prompt.at("fixture").get<std::string>());
    auto ids = fixture.at("prompts")
                   .at(prompt.at("prompt").get<std::string>())
                   .at("prompt_ids")
                   .get<std::vector<std::int32_t>>();
    ids.resize(prompt.at("length").get<std::size_t>());
    for (const Json& one : prompt.at("cases")) {
      SCOPED_TRACE(one.at("press").get<std::string>() + ", budget " +
                   std::to_string(one.at("budget").get<int>()));
      expect_kept_as_by_kvpress(one, ids, run_model(model, ids, as_kvpress(one)));
      ++num_cases;
    }
  }
  EXPECT_EQ(num_cases, 17);
}

TEST(Kvpress, KeepsTheSamePositionsOfNeedlesPrompt) {
  expect_kvpress_keeps_the_same_of("needle", "models/needle");
}

TEST(Kvpress, KeepsTheSamePositionsOfSmolLm2sPrompt) {
  expect_kvpress_keeps_the_same_of("smollm2", "models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
}

}  // namespace
}  // namespace tidekv::testing
