// Each chunk through all layers. Without eviction the numbers are those of every other schedule,
// bit for bit; with it the budget holds after every chunk, positions stay true, and later chunks
// see what was left: the drift that delayed eviction avoids (Table 8, Fig. 6).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "compress/selector.h"
#include "system/schedule_fidelity.h"
#include "tidekv/engine.h"

namespace tidekv::testing {
namespace {

constexpr std::int64_t kPromptLen = 301;
constexpr std::int64_t kBudget = 96;

const FidelityCase kToy{"tests/data/models/toy2", kPromptLen, kBudget, {1, 7, 64, 250, 301}};

class ChunkMajor : public MethodRuns {
 protected:
  ChunkMajor() : MethodRuns(kToy) {}

  using MethodRuns::run;
  RunCapture run(const std::string& method, std::int64_t chunk_len) const {
    return run(setup_of(method, chunk_len));
  }

  // Retains what its budget says, whatever a head has of it.
  std::int64_t total_kept(const HeldRows& held) const {
    std::int64_t total = 0;
    for (const auto& head : held.positions) {
      total += static_cast<std::int64_t>(head.size());
    }
    return total;
  }
};

TEST_P(ChunkMajor, FullChunkedEqualsTheFullCacheForEveryChunkLength) {
  const RunCapture full = run("full", 0);
  ASSERT_EQ(full.tokens.size(), 32U);
  for (const std::int64_t chunk_len : kToy.chunk_lens) {
    const RunCapture chunked = run("full-chunked", chunk_len);
    EXPECT_EQ(first_difference(full, chunked), "") << "chunk " << chunk_len;
    EXPECT_EQ(static_cast<std::int64_t>(chunked.layers[0].after_chunks.size()),
              (kPromptLen + chunk_len - 1) / chunk_len);
  }
}

// A prompt of one chunk is cut once, after all of it was seen: nothing is immediate about that.
TEST_P(ChunkMajor, OneChunkIsTheMatchedControl) {
  for (const SelectorEntry& selector : selector_entries()) {
    if (selector.short_name.empty()) {
      continue;
    }
    RunSetup matched = setup_of(std::string(selector.name), 0);
    RunSetup block = setup_of("block-" + std::string(selector.short_name), kPromptLen);
    matched.options.num_sinks = block.options.num_sinks = 2;
    block.options.key_block_len = 37;
    EXPECT_EQ(first_difference(run(matched), run(block)), "") << selector.name;
  }
}

TEST_P(ChunkMajor, BudgetHoldsAfterEveryChunkAndPositionsStayTrue) {
  for (const SelectorEntry& selector : selector_entries()) {
    if (selector.short_name.empty()) {
      continue;
    }
    RunSetup setup = setup_of("block-" + std::string(selector.short_name), 50);
    setup.options.num_sinks = 3;
    SelectorOptions options{.budget = kBudget, .window_len = 32, .num_sinks = 3, .pool = {}};
    std::vector<std::int64_t> budgets(static_cast<std::size_t>(model_.config().num_layers));
    selector.create(options)->layer_budgets(kPromptLen, budgets);
    const ScoreRecipe recipe = selector.create(options)->score_recipe(kPromptLen);
    const RunCapture capture = run(setup);
    for (std::size_t layer = 0; layer < budgets.size(); ++layer) {
      const std::vector<HeldRows>& chunks = capture.layers[layer].after_chunks;
      ASSERT_GE(chunks.size(), 7U) << selector.name;
      std::vector<std::vector<std::int32_t>> before(chunks[0].positions.size());
      std::int64_t begin = 0;
      for (const HeldRows& held : chunks) {
        EXPECT_EQ(total_kept(held),
                  model_.config().num_kv_heads * std::min(budgets[layer], held.end))
            << selector.name;
        for (std::size_t head = 0; head < before.size(); ++head) {
          const std::vector<std::int32_t>& now = held.positions[head];
          EXPECT_TRUE(std::adjacent_find(now.begin(), now.end(), std::greater_equal<>()) ==
                      now.end());
          for (const std::int32_t position : now) {  // cached before, or of the chunk
            EXPECT_TRUE(position >= begin ? position < held.end
                                          : std::binary_search(before[head].begin(),
                                                               before[head].end(), position));
          }
          for (std::int32_t position = 0; position < 3; ++position) {  // the prompt's sinks
            EXPECT_EQ(now[static_cast<std::size_t>(position)], position) << selector.name;
          }
          for (std::int64_t recent = 1; recent <= recipe.num_recent && recent <= held.end;
               ++recent) {
            EXPECT_TRUE(std::binary_search(now.begin(), now.end(), held.end - recent));
          }
        }
        before = held.positions;
        begin = held.end;
      }
    }
  }
}

// Otherwise immediate eviction would be no control.
TEST_P(ChunkMajor, ImmediateEvictionDriftsAndDelayedDoesNot) {
  const RunCapture full = run("full", 0);
  const RunCapture delayed = run("tidekv-snap", 50);
  const RunCapture immediate = run("block-snap", 50);
  EXPECT_EQ(delayed.layers.back().hidden, full.layers.back().hidden);
  EXPECT_NE(immediate.layers.back().hidden, full.layers.back().hidden);
  EXPECT_NE(immediate.layers.back().positions, delayed.layers.back().positions);
  // Rows of the chunks before the first cut saw everything; later ones did not.
  const std::size_t row_bytes = full.layers.back().hidden.size() / kPromptLen;
  const auto begin_of = [](const LayerCapture& layer) { return layer.hidden.begin(); };
  const auto seen = static_cast<std::ptrdiff_t>(row_bytes * 100);
  EXPECT_TRUE(std::equal(begin_of(full.layers[0]), begin_of(full.layers[0]) + seen,
                         begin_of(immediate.layers[0])));
}

TEST_P(ChunkMajor, LastRowShortcutChangesNothingThatIsKept) {
  for (const char* method : {"full-chunked", "block-snap", "block-ada", "keydiff"}) {
    RunSetup last_row = setup_of(method, 64);
    last_row.options.all_rows = false;
    RunCapture whole = run(method, 64);
    const RunCapture part = run(last_row);
    std::vector<std::byte>& rows = whole.layers.back().hidden;
    rows.erase(rows.begin(),
               rows.end() - static_cast<std::ptrdiff_t>(part.layers.back().hidden.size()));
    EXPECT_EQ(first_difference(whole, part), "") << method;
  }
}

TEST_P(ChunkMajor, KeyBlocksAndThreadsChangeNothing) {
  for (const char* method : {"block-snap", "block-ada", "block-chunk", "keydiff", "block-knorm"}) {
    const RunCapture reference = run(method, 60);
    for (const std::int64_t key_block_len : {std::int64_t{17}, kPromptLen}) {
      RunSetup other = setup_of(method, 60);
      other.options.key_block_len = key_block_len;
      other.num_threads = key_block_len == 17 ? 1 : 5;
      const RunCapture capture = run(other);
      EXPECT_EQ(first_difference(reference, capture), "") << method;
      EXPECT_EQ(capture.layers[0].retained_lens, reference.layers[0].retained_lens) << method;
    }
  }
}

// The last cut asks a whole window, also where the prompt's last chunk would be a short one.
TEST_P(ChunkMajor, TheLastChunkHasAWholeWindow) {
  const RunCapture capture = run("block-snap", 100);  // 301 = 3 * 100 + 1
  std::vector<std::int64_t> ends;
  for (const HeldRows& held : capture.layers[0].after_chunks) {
    ends.push_back(held.end);
  }
  EXPECT_EQ(ends, (std::vector<std::int64_t>{100, 200, 269, 301}));
}

// --- the online methods ---

// Keys of the first layer do not depend on what was evicted, so what KeyDiff keeps of them follows
// from the keys of a run that keeps all: by plain loops, in double.
class PlainKeyDiff {
 public:
  // `cache`: keys of all heads, then values.
  PlainKeyDiff(const std::vector<std::byte>& cache, const ModelConfig& config, DType dtype,
               std::int64_t num_keys)
      : head_dim_(config.head_dim) {
    for (std::int64_t head = 0; head < config.num_kv_heads; ++head) {
      for (std::int64_t key = 0; key < num_keys; ++key) {
        std::vector<double> unit;
        double square = 0;
        for (std::int64_t col = 0; col < head_dim_; ++col) {
          const std::int64_t at = ((head * num_keys + key) * head_dim_ + col) * size_of(dtype);
          unit.push_back(element(cache.data() + at, dtype));
          square += unit.back() * unit.back();
        }
        for (double& value : unit) {
          value /= std::sqrt(square);
        }
        keys_.push_back(std::move(unit));
      }
    }
    num_keys_ = num_keys;
  }

  // Of the positions held, those that stay.
  std::vector<std::int32_t> cut(std::int64_t head, std::vector<std::int32_t> held,
                                std::int64_t budget) const {
    if (static_cast<std::int64_t>(held.size()) <= budget) {
      return held;
    }
    std::vector<double> mean(static_cast<std::size_t>(head_dim_));
    for (const std::int32_t position : held) {
      for (std::size_t col = 0; col < mean.size(); ++col) {
        mean[col] += unit(head, position)[col];
      }
    }
    const auto alike = [&](std::int32_t position) {
      return std::inner_product(mean.begin(), mean.end(), unit(head, position).begin(), 0.0);
    };
    std::stable_sort(held.begin(), held.end(),
                     [&](std::int32_t a, std::int32_t b) { return alike(a) < alike(b); });
    held.resize(static_cast<std::size_t>(budget));
    std::sort(held.begin(), held.end());
    return held;
  }

 private:
  static double element(const std::byte* bytes, DType dtype) {
    float value = 0.0F;
    if (dtype == DType::kF32) {
      std::memcpy(&value, bytes, 4);
    } else {
      std::memcpy(reinterpret_cast<std::byte*>(&value) + 2, bytes, 2);  // BF16, little endian
    }
    return static_cast<double>(value);
  }
  const std::vector<double>& unit(std::int64_t head, std::int32_t position) const {
    return keys_[static_cast<std::size_t>(head * num_keys_ + position)];
  }

  std::int64_t head_dim_;
  std::int64_t num_keys_ = 0;
  std::vector<std::vector<double>> keys_;
};

TEST_P(ChunkMajor, KeyDiffKeepsWhatPlainLoopsOverTheFirstLayersKeysKeep) {
  const RunCapture full = run("full", 0);
  const bool is_f32 = std::get<1>(GetParam()) == ComputeType::kF32;
  const PlainKeyDiff plain(full.layers[0].cache, model_.config(),
                           is_f32 ? DType::kF32 : DType::kBF16, kPromptLen);
  const RunCapture online = run("keydiff", 40);
  ASSERT_EQ(online.layers[0].after_chunks.size(), 8U);
  for (std::int64_t head = 0; head < model_.config().num_kv_heads; ++head) {
    std::vector<std::int32_t> held;
    std::int32_t begin = 0;
    for (const HeldRows& chunk : online.layers[0].after_chunks) {
      for (; begin < chunk.end; ++begin) {
        held.push_back(begin);
      }
      held = plain.cut(head, held, kBudget);
      EXPECT_EQ(chunk.positions[static_cast<std::size_t>(head)], held)
          << "head " << head << ", after " << chunk.end;
    }
  }
}

TEST_P(ChunkMajor, OnlineMethodsKeepTheirBudgetWhileGenerating) {
  for (const std::string method : {"keydiff", "streaming-llm"}) {
    for (const std::int64_t budget : {std::int64_t{20}, kBudget, kPromptLen, kPromptLen + 10}) {
      RunSetup setup = setup_of(method, 50);
      setup.options.budget = budget;
      setup.options.max_new_tokens = 51;
      setup.capture_tokens = true;
      const RunCapture capture = run(setup);
      for (const LayerCapture& layer : capture.layers) {
        ASSERT_EQ(layer.after_tokens.size(), 50U);
        for (const HeldRows& held : layer.after_tokens) {
          for (const std::vector<std::int32_t>& head : held.positions) {
            EXPECT_EQ(static_cast<std::int64_t>(head.size()), std::min(budget, held.end))
                << method << ", budget " << budget;
            EXPECT_TRUE(std::adjacent_find(head.begin(), head.end(), std::greater_equal<>()) ==
                        head.end());
            EXPECT_LT(head.back(), held.end);
          }
        }
      }
    }
  }
}

TEST_P(ChunkMajor, StreamingLlmHoldsSinksAndTheNewestAtEveryMoment) {
  RunSetup setup = setup_of("streaming-llm", 50);
  setup.options.max_new_tokens = 51;
  setup.capture_tokens = true;
  const RunCapture capture = run(setup);
  const auto expect_held = [](const HeldRows& held) {
    std::vector<std::int32_t> wanted;
    const std::int64_t kept = std::min(kBudget, held.end);
    for (std::int64_t slot = 0; slot < kept; ++slot) {
      const std::int64_t position = slot < 4 ? slot : held.end - kept + slot;
      wanted.push_back(static_cast<std::int32_t>(position));
    }
    for (const std::vector<std::int32_t>& head : held.positions) {
      EXPECT_EQ(head, wanted) << "after " << held.end;
    }
  };
  for (const LayerCapture& layer : capture.layers) {
    std::for_each(layer.after_chunks.begin(), layer.after_chunks.end(), expect_held);
    std::for_each(layer.after_tokens.begin(), layer.after_tokens.end(), expect_held);
  }
}

// A chunk of one row cut at once is what generation does; but for the order of sums, which a prompt
// and a generated token have of their own, the same tokens would follow.
TEST_P(ChunkMajor, BlockRecentKeepsNoSinksUnlessAsked) {
  const RunCapture capture = run("block-recent", 50);
  for (const std::vector<std::int32_t>& head : capture.layers[1].after_chunks.back().positions) {
    EXPECT_EQ(head.front(), kPromptLen - kBudget);
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, ChunkMajor, every_backend_and_type(), name_of_case);

// --- memory ---

PlanReport plan_of(const PrefillOptions& options, std::int64_t prompt_len) {
  Result<PlanReport> report =
      plan_shape("llama-3.1-8b", {.num_threads = 2}, options, prompt_len, true);
  if (!report.ok()) {
    ADD_FAILURE() << report.error().message;
    return {};
  }
  return std::move(report).value();
}

std::int64_t peak_of(const PlanReport& report, const std::string& name) {
  std::int64_t live = 0;
  std::int64_t peak = 0;
  for (const TimelineEntry& entry : report.timeline) {
    live += entry.component == name ? entry.delta_bytes : 0;
    peak = std::max(peak, live);
  }
  return peak;
}

constexpr std::int64_t kRowBytes = std::int64_t{2} * 8 * 128 * 2;  // K and V of one token and layer

TEST(ChunkMajorMemory, HoldsTheBudgetsAndOneChunkMoreInOneLayer) {
  PrefillOptions options;
  options.method = "block-snap";
  options.chunk_len = 512;
  options.budget = 1024;
  options.max_new_tokens = 1;
  for (const std::int64_t prompt_len : {std::int64_t{16384}, std::int64_t{131072}}) {
    const PlanReport report = plan_of(options, prompt_len);
    EXPECT_EQ(peak_of(report, "full_kv"), (1024 + 512) * kRowBytes);
    EXPECT_EQ(peak_of(report, "compact_cache"), 32 * 1024 * kRowBytes);
    EXPECT_EQ(peak_of(report, "hidden_bridge"), 512 * 4096 * 2);
    EXPECT_EQ(report.memory.peak_bytes, report.formula.closed_form_peak_bytes);
  }
  EXPECT_EQ(plan_of(options, 16384).memory.peak_bytes, plan_of(options, 131072).memory.peak_bytes);
}

TEST(ChunkMajorMemory, FullChunkedNeverHoldsALayerTwice) {
  PrefillOptions options;
  options.method = "full-chunked";
  options.chunk_len = 512;
  options.max_new_tokens = 101;
  const PlanReport report = plan_of(options, 16384);
  EXPECT_EQ(peak_of(report, "full_kv"), 0);
  EXPECT_EQ(peak_of(report, "compact_cache"), 32 * 16384 * kRowBytes);
  EXPECT_EQ(peak_of(report, "decode_growth"), 32 * 100 * kRowBytes);
}

TEST(ChunkMajorMemory, OnlineMethodsGrowByOneRow) {
  PrefillOptions options;
  options.method = "keydiff";
  options.budget = 1024;
  options.max_new_tokens = 5000;
  const PlanReport report = plan_of(options, 8192);
  EXPECT_EQ(report.chunk_len, 128);
  EXPECT_EQ(peak_of(report, "decode_growth"), 32 * kRowBytes);
  options.budget = 8200;  // the prompt leaves eight rows
  EXPECT_EQ(peak_of(plan_of(options, 8192), "decode_growth"), 32 * 9 * kRowBytes);
}

// An entry per chunk, layer and buffer: the plan must not take longer than the prompt.
TEST(ChunkMajorMemory, PlansAPromptOfThousandsOfChunks) {
  PrefillOptions options;
  options.method = "keydiff";
  options.budget = 1024;
  options.chunk_len = 64;
  const PlanReport report = plan_of(options, 131072);
  EXPECT_EQ(report.memory.peak_bytes, report.formula.closed_form_peak_bytes);
}

}  // namespace
}  // namespace tidekv::testing
