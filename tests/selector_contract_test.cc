// What every selector of the registry promises, on every backend: the budget is exact, mandatory
// tokens stay, the compact cache holds the rows its positions name, streaming over key blocks
// equals dense scoring bit for bit, and both agree with the oracle in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "compress/selector.h"
#include "conformance/compressed_prompt.h"
#include "conformance/device.h"
#include "oracle/choice.h"
#include "oracle/dense_snapkv.h"

namespace tidekv::conformance {
namespace {

using oracle::DenseSelection;

class SelectorContract
    : public testing::TestWithParam<std::tuple<const BackendEntry*, const SelectorEntry*>> {
 protected:
  static constexpr std::uint64_t kSeed = 20240612;

  SelectorContract() : device_(*std::get<0>(GetParam())), random_(kSeed) {}

  std::unique_ptr<Selector> selector(const SelectorOptions& options) const {
    EXPECT_TRUE(check_selector_options(*std::get<1>(GetParam()), options).ok());
    return std::get<1>(GetParam())->create(options);
  }
  // The selector that evicts nothing promises less about budgets, and more about rows.
  bool keeps_all() const { return std::get<1>(GetParam())->name == "full"; }

  std::vector<std::int64_t> budgets_of(const SelectorOptions& options, const Prompt& prompt) const {
    std::vector<std::int64_t> budgets(static_cast<std::size_t>(prompt.shape.num_layers));
    selector(options)->layer_budgets(prompt.shape.prompt_len, budgets);
    return budgets;
  }

  std::vector<Kept> compress(const Prompt& prompt, const SelectorOptions& options,
                             std::int64_t key_block_len) {
    return compress_prompt(device_, prompt, *selector(options), key_block_len);
  }

  // --- the promises ---

  void expect_exact_budgets(const Prompt& prompt, const SelectorOptions& options,
                            const std::vector<Kept>& kept) const {
    const bool splits = selector(options)->score_recipe(prompt.shape.prompt_len).even_share < 1;
    const std::vector<std::int64_t> budgets = budgets_of(options, prompt);
    std::int64_t total = 0;
    for (std::size_t layer = 0; layer < kept.size(); ++layer) {
      const std::int64_t budget = std::min(budgets[layer], prompt.shape.prompt_len);
      std::int64_t of_layer = 0;
      for (const auto& head : kept[layer].positions) {
        of_layer += static_cast<std::int64_t>(head.size());
        EXPECT_TRUE(splits || static_cast<std::int64_t>(head.size()) == budget);
      }
      EXPECT_EQ(of_layer, prompt.shape.num_kv_heads * budget);
      total += of_layer;
    }
    const std::int64_t per_head =
        keeps_all() ? prompt.shape.prompt_len : std::min(options.budget, prompt.shape.prompt_len);
    EXPECT_EQ(total, prompt.shape.num_layers * prompt.shape.num_kv_heads * per_head);
  }

  void expect_ascending_with_mandatory(const Prompt& prompt, const SelectorOptions& options,
                                       const std::vector<Kept>& kept) const {
    const ScoreRecipe recipe = selector(options)->score_recipe(prompt.shape.prompt_len);
    const std::int64_t len = prompt.shape.prompt_len;
    for (const Kept& layer : kept) {
      for (const std::vector<std::int32_t>& head : layer.positions) {
        ASSERT_TRUE(std::adjacent_find(head.begin(), head.end(), std::greater_equal<>()) ==
                    head.end());
        ASSERT_TRUE(head.front() >= 0 && head.back() < len);
        for (std::int64_t position = 0; position < len; ++position) {
          if (position < recipe.num_sinks || position >= len - recipe.num_recent) {
            ASSERT_TRUE(std::binary_search(head.begin(), head.end(), position)) << position;
          }
        }
      }
    }
  }

  void expect_rows_of_positions(const Prompt& prompt, const std::vector<Kept>& kept) const {
    for (std::size_t layer = 0; layer < kept.size(); ++layer) {
      expect_rows_of_positions(prompt.layers[layer].kv, kept[layer]);
    }
  }
  static void expect_rows_of_positions(const Kv& kv, const Kept& kept) {
    HostTensor keys(kept.keys.dtype(), kept.keys.rows(), kv.head_dim());
    HostTensor values = keys;
    std::int64_t row = 0;
    for (std::size_t head = 0; head < kept.positions.size(); ++head) {
      for (const std::int32_t position : kept.positions[head]) {
        keys.put_rows(row, kv.keys.rows_at(kv.heads[head].offset + position, 1));
        values.put_rows(row, kv.values.rows_at(kv.heads[head].offset + position, 1));
        ++row;
      }
    }
    EXPECT_TRUE(same_bits(kept.keys, keys));
    EXPECT_TRUE(same_bits(kept.values, values));
  }

  // --- cuts as chunks pass ---

  // What a layer holds before the cut: the rows kept so far, and those of the chunk.
  static AttentionCase before_cut(const AttentionCase& layer, const ChunkKept& chunk,
                                  const std::vector<std::vector<std::int32_t>>& positions,
                                  const ScoreRecipe& recipe) {
    AttentionCase held;
    std::int64_t rows = 0;
    for (const auto& head : positions) {
      const auto len = static_cast<std::int64_t>(head.size());
      held.kv.heads.push_back({rows, len, len});
      rows += len;
    }
    held.kv.keys = HostTensor(layer.kv.keys.dtype(), rows, layer.kv.head_dim());
    held.kv.values = held.kv.keys;
    for (std::size_t head = 0; head < positions.size(); ++head) {
      for (std::size_t row = 0; row < positions[head].size(); ++row) {
        const std::int64_t from = layer.kv.heads[head].offset + positions[head][row];
        held.kv.keys.put_rows(held.kv.heads[head].offset + static_cast<std::int64_t>(row),
                              layer.kv.keys.rows_at(from, 1));
        held.kv.values.put_rows(held.kv.heads[head].offset + static_cast<std::int64_t>(row),
                                layer.kv.values.rows_at(from, 1));
      }
    }
    const std::int64_t len = chunk.end - chunk.begin;
    const std::int64_t queries = recipe.observes_all() ? len : std::min(recipe.window_len, len);
    held.q = layer.q.rows_at(chunk.end - queries, queries);
    return held;
  }

  // The oracle looks at what was held before the cut, and keeps of each head as many rows.
  void expect_oracles_cut(const ScoreRecipe& recipe, const AttentionCase& held,
                          const std::vector<std::vector<std::int32_t>>& positions, std::int64_t end,
                          const Kept& kept) const {
    ScoreRecipe shorter = recipe;
    shorter.window_len = held.q.rows();
    for (std::size_t head = 0; head < positions.size(); ++head) {
      std::vector<std::int32_t> slots;
      for (const std::int32_t position : kept.positions[head]) {
        const auto at = std::lower_bound(positions[head].begin(), positions[head].end(), position);
        ASSERT_TRUE(at != positions[head].end() && *at == position) << position;
        slots.push_back(static_cast<std::int32_t>(at - positions[head].begin()));
      }
      const auto len = static_cast<std::int64_t>(slots.size());
      if (recipe.num_mandatory() == len) {
        for (std::int64_t slot = 0; slot < len; ++slot) {  // sinks and the newest, nothing else
          const std::int64_t left = static_cast<std::int64_t>(positions[head].size()) - len;
          EXPECT_EQ(slots[static_cast<std::size_t>(slot)],
                    slot < recipe.num_sinks ? slot : slot + left);
        }
      } else if (recipe.unit_len == 1) {
        EXPECT_TRUE(oracle::explained_by_rounding(dense(shorter, held, len, end - held.q.rows()),
                                                  head, slots))
            << "head " << head;
      }
    }
  }

  // After every chunk the budget holds, rows are those of their true positions, and the choice is
  // the oracle's among the rows that were left.
  void expect_contract_by_chunk(const Prompt& prompt, const SelectorOptions& options,
                                std::int64_t chunk_len) {
    SCOPED_TRACE("chunk " + std::to_string(chunk_len));
    const ScoreRecipe recipe = selector(options)->score_recipe(prompt.shape.prompt_len);
    const std::vector<std::int64_t> budgets = budgets_of(options, prompt);
    std::vector<std::vector<std::vector<std::int32_t>>> kept_so_far(
        budgets.size(), std::vector<std::vector<std::int32_t>>(
                            static_cast<std::size_t>(prompt.shape.num_kv_heads)));
    compress_by_chunk(
        device_, prompt, *selector(options), chunk_len, 64, [&](const ChunkKept& chunk) {
          const auto layer = static_cast<std::size_t>(chunk.layer);
          const AttentionCase& given = prompt.layers[layer];
          std::vector<std::vector<std::int32_t>> positions = kept_so_far[layer];
          std::int64_t total = 0;
          for (std::size_t head = 0; head < positions.size(); ++head) {
            for (std::int64_t position = chunk.begin; position < chunk.end; ++position) {
              positions[head].push_back(static_cast<std::int32_t>(position));
            }
            total += static_cast<std::int64_t>(chunk.kept.positions[head].size());
          }
          EXPECT_EQ(total, prompt.shape.num_kv_heads * std::min(budgets[layer], chunk.end));
          expect_rows_of_positions(given.kv, chunk.kept);
          if (chunk.end > budgets[layer]) {
            expect_oracles_cut(recipe, before_cut(given, chunk, positions, recipe), positions,
                               chunk.end, chunk.kept);
          } else {
            EXPECT_EQ(chunk.kept.positions, positions);
          }
          kept_so_far[layer] = chunk.kept.positions;
        });
  }

  void expect_same_choice(const std::vector<Kept>& got, const std::vector<Kept>& wanted) const {
    for (std::size_t layer = 0; layer < wanted.size(); ++layer) {
      EXPECT_EQ(got[layer].positions, wanted[layer].positions) << "layer " << layer;
      EXPECT_EQ(got[layer].scores, wanted[layer].scores) << "layer " << layer;
      EXPECT_TRUE(same_bits(got[layer].keys, wanted[layer].keys)) << "layer " << layer;
      EXPECT_TRUE(same_bits(got[layer].values, wanted[layer].values)) << "layer " << layer;
    }
  }

  // The oracle's scores and, where tokens are chosen by rank alone, its choice. The first query
  // stands at position `first`.
  static DenseSelection dense(const ScoreRecipe& recipe, const AttentionCase& layer,
                              std::int64_t budget, std::int64_t first = 0) {
    const oracle::DenseSnapKvOptions options{budget, recipe.num_recent, recipe.num_sinks,
                                             recipe.pool};
    if (recipe.source == ScoreSource::kKeyNorm) {
      return oracle::dense_knorm(layer.kv, options);
    }
    if (recipe.source == ScoreSource::kKeyDifference) {
      return oracle::dense_key_difference(layer.kv, options);
    }
    if (recipe.observes_all()) {
      const std::int64_t skipped = std::max<std::int64_t>(0, recipe.num_sinks - first);
      return oracle::dense_expected_attention(layer.q.rows_at(skipped, layer.q.rows() - skipped),
                                              inverse_frequencies(layer.kv.head_dim()),
                                              Position{static_cast<std::int32_t>(first + skipped)},
                                              layer.kv, options);
    }
    return oracle::dense_snapkv(
        layer.q.rows_at(layer.q.rows() - recipe.window_len, recipe.window_len), layer.kv, options);
  }

  void expect_what_the_oracle_keeps(const Prompt& prompt, const SelectorOptions& options,
                                    const std::vector<Kept>& kept) const {
    const ScoreRecipe recipe = selector(options)->score_recipe(prompt.shape.prompt_len);
    const std::vector<std::int64_t> budgets = budgets_of(options, prompt);
    for (std::size_t layer = 0; layer < kept.size(); ++layer) {
      if (kept[layer].scores.empty()) {
        continue;  // nothing was evicted, so nothing was scored
      }
      const DenseSelection wanted = dense(recipe, prompt.layers[layer], budgets[layer]);
      const bool by_rank_alone = recipe.unit_len == 1 && recipe.even_share >= 1;
      for (std::size_t head = 0; head < wanted.positions.size(); ++head) {
        if (by_rank_alone) {
          EXPECT_TRUE(oracle::explained_by_rounding(wanted, head, kept[layer].positions[head]))
              << "layer " << layer << ", head " << head;
        }
        expect_scores_near(kept[layer].scores[head], wanted, head, recipe.num_sinks);
      }
      EXPECT_EQ(kept[layer].positions,
                oracle::choose_positions(kept[layer].scores, recipe, budgets[layer],
                                         prompt.shape.prompt_len))
          << "layer " << layer;
    }
  }

  static void expect_scores_near(const std::vector<float>& scores, const DenseSelection& wanted,
                                 std::size_t head, std::int64_t num_sinks) {
    ASSERT_EQ(scores.size(), wanted.scores[head].size());
    for (auto key = static_cast<std::size_t>(num_sinks); key < scores.size(); ++key) {
      ASSERT_NEAR(static_cast<double>(scores[key]), wanted.scores[head][key],
                  wanted.score_bounds[head][key])
          << "key " << key;
    }
  }

  // Everything above, for key blocks of 64, 1000 and the whole prompt.
  void expect_contract(const Prompt& prompt, const SelectorOptions& options) {
    SCOPED_TRACE("S " + std::to_string(prompt.shape.prompt_len) + ", K " +
                 std::to_string(options.budget) + ", W " + std::to_string(options.window_len) +
                 ", sinks " + std::to_string(options.num_sinks) + ", kernel " +
                 std::to_string(options.pool.kernel_len) + ", group " +
                 std::to_string(prompt.group));
    const std::vector<Kept> dense = compress(prompt, options, prompt.shape.prompt_len);
    expect_exact_budgets(prompt, options, dense);
    expect_ascending_with_mandatory(prompt, options, dense);
    expect_rows_of_positions(prompt, dense);
    expect_what_the_oracle_keeps(prompt, options, dense);
    for (const std::int64_t block : {std::int64_t{64}, std::int64_t{1000}}) {
      expect_same_choice(compress(prompt, options, block), dense);
    }
    for (const std::int64_t margin : {std::int64_t{0}, std::int64_t{5}}) {
      expect_same_choice(compress_prompt(device_, prompt, *selector(options), 64, margin), dense);
    }
  }

  Device device_;
  Random random_;

 private:
  testing::ScopedTrace seed_trace_{__FILE__, __LINE__, "seed " + std::to_string(kSeed)};
};

std::vector<const SelectorEntry*> all_selectors() {
  std::vector<const SelectorEntry*> selectors;
  for (const SelectorEntry& entry : selector_entries()) {
    selectors.push_back(&entry);
  }
  return selectors;
}

std::string contract_test_name(const testing::TestParamInfo<SelectorContract::ParamType>& info) {
  std::string name =
      std::string(std::get<0>(info.param)->name) + "_" + std::string(std::get<1>(info.param)->name);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(On, SelectorContract,
                         testing::Combine(testing::ValuesIn(available_backends()),
                                          testing::ValuesIn(all_selectors())),
                         contract_test_name);

TEST_P(SelectorContract, HoldsForEveryPoolingRecipe) {
  const Prompt prompt = random_prompt(random_, {}, Inputs::kPlain);
  for (const GroupReduce reduce : {GroupReduce::kMean, GroupReduce::kMax}) {
    for (const Pool pool : {Pool::kMax, Pool::kAverage}) {
      for (const std::int64_t kernel_len : {1, 3, 7}) {
        expect_contract(
            prompt,
            {.budget = 60, .window_len = 8, .num_sinks = 2, .pool = {reduce, pool, kernel_len}});
      }
    }
  }
}

TEST_P(SelectorContract, HoldsForHardInputs) {
  for (const Inputs inputs : kAllInputs) {
    SCOPED_TRACE("inputs " + std::to_string(static_cast<int>(inputs)));
    const Prompt prompt = random_prompt(random_, {.prompt_len = 400}, inputs);
    expect_contract(prompt, {.budget = 96, .window_len = 16, .num_sinks = 4, .pool = {}});
  }
}

// Around the lengths where something begins to be evicted, and where the window meets the start.
TEST_P(SelectorContract, HoldsForPromptLengthsAroundWindowAndBudget) {
  constexpr std::int64_t kWindow = 8;
  constexpr std::int64_t kBudget = 20;
  for (const std::int64_t len : {std::int64_t{1}, kWindow - 1, kWindow, kWindow + 1, kBudget - 1,
                                 kBudget, kBudget + 1, kBudget + kWindow, std::int64_t{63},
                                 std::int64_t{64}, std::int64_t{65}, std::int64_t{71}}) {
    const Prompt prompt = random_prompt(random_, {.prompt_len = len}, Inputs::kPlain);
    expect_contract(prompt, {.budget = kBudget, .window_len = kWindow, .num_sinks = 0, .pool = {}});
  }
}

TEST_P(SelectorContract, HoldsForBudgetsAroundTheMandatoryTokens) {
  const Prompt prompt = random_prompt(random_, {.prompt_len = 90}, Inputs::kPlain);
  for (const std::int64_t budget : {20, 21, 25, 31, 89, 90, 91}) {  // 20 are mandatory; K < 2 W
    expect_contract(prompt, {.budget = budget, .window_len = 16, .num_sinks = 4, .pool = {}});
  }
}

TEST_P(SelectorContract, HoldsForAPromptOfSeveralLargeBlocks) {
  const Prompt prompt =
      random_prompt(random_, {.prompt_len = 2100, .num_layers = 1, .num_kv_heads = 1, .group = 1},
                    Inputs::kPlain);
  expect_contract(prompt, {.budget = 300, .window_len = 8, .num_sinks = 0, .pool = {}});
}

TEST_P(SelectorContract, KeepsEveryRowOfAPromptThatFitsTheBudget) {
  for (const std::int64_t len : {1, 7, 40, 64}) {
    const Prompt prompt = random_prompt(random_, {.prompt_len = len}, Inputs::kPlain);
    const std::vector<Kept> kept =
        compress(prompt, {.budget = 64, .window_len = 8, .num_sinks = 0, .pool = {}}, 64);
    for (const Kept& layer : kept) {
      EXPECT_EQ(static_cast<std::int64_t>(layer.positions[0].size()), len);
      EXPECT_TRUE(layer.scores.empty());
    }
    expect_rows_of_positions(prompt, kept);
  }
}

TEST_P(SelectorContract, HoldsAfterEveryChunkWhereCachesAreCutAtOnce) {
  const Prompt prompt = random_prompt(random_, {.prompt_len = 230}, Inputs::kPlain);
  for (const std::int64_t chunk_len : {1, 7, 50, 64, 230}) {
    expect_contract_by_chunk(
        prompt, {.budget = 60, .window_len = 8, .num_sinks = 3, .pool = {}, .unit_len = 4},
        chunk_len);
  }
}

TEST_P(SelectorContract, HoldsAfterEveryChunkForHardInputs) {
  for (const Inputs inputs : kAllInputs) {
    const Prompt prompt =
        random_prompt(random_, {.prompt_len = 200, .num_layers = 1, .num_kv_heads = 3}, inputs);
    expect_contract_by_chunk(
        prompt, {.budget = 70, .window_len = 16, .num_sinks = 0, .pool = {}, .even_share = 0}, 40);
  }
}

TEST_P(SelectorContract, HoldsForRandomSizes) {
  for (int trial = 0; trial < 30; ++trial) {
    PromptSize size;
    size.prompt_len = 1 + random_.below(260);
    size.num_layers = 1 + random_.below(3);
    size.num_kv_heads = 1 + random_.below(3);
    size.group = 1 + random_.below(4);
    size.head_dim = 2 * (1 + random_.below(20));
    SelectorOptions options;
    options.window_len = 1 + random_.below(12);
    options.num_sinks = random_.below(4);
    options.budget = options.window_len + options.num_sinks + random_.below(120);
    options.pool = {random_.below(2) == 0 ? GroupReduce::kMean : GroupReduce::kMax,
                    random_.below(2) == 0 ? Pool::kMax : Pool::kAverage, 1 + 2 * random_.below(5)};
    options.unit_len = 1 + random_.below(20);
    options.even_share = static_cast<double>(random_.below(11)) / 10;
    options.steepness = 1 + random_.below(40);
    const auto inputs = static_cast<Inputs>(random_.below(4));
    SCOPED_TRACE("trial " + std::to_string(trial));
    expect_contract(random_prompt(random_, size, inputs), options);
  }
}

TEST(SelectorRegistry, NamesAreUniqueAndNotEmpty) {
  std::vector<std::string_view> names;
  for (const SelectorEntry& entry : selector_entries()) {
    names.push_back(entry.name);
    EXPECT_FALSE(entry.name.empty());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace tidekv::conformance
