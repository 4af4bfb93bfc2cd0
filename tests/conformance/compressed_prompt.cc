#include "conformance/compressed_prompt.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "compress/compressor.h"

namespace tidekv::conformance {
namespace {

// Collects pooled scores, and checks that blocks come in order without gaps.
class ScoreCollector final : public ScoreProbe {
 public:
  ScoreCollector(Device& device, std::vector<Kept>& kept) : device_(device), kept_(kept) {}

  void on_scores(std::int64_t layer, KeyRange range, DeviceView scores) override {
    const HostTensor block = device_.get(scores);
    auto& heads = kept_[static_cast<std::size_t>(layer)].scores;
    heads.resize(static_cast<std::size_t>(block.rows()));
    for (std::int64_t head = 0; head < block.rows(); ++head) {
      auto& row = heads[static_cast<std::size_t>(head)];
      if (row.empty()) {
        row.assign(static_cast<std::size_t>(range.begin), 0.0F);  // sinks are not offered
      }
      EXPECT_EQ(static_cast<std::int64_t>(row.size()), range.begin);
      for (std::int64_t col = 0; col < block.cols(); ++col) {
        row.push_back(static_cast<float>(block.at(head, col)));
      }
    }
  }

 private:
  Device& device_;
  std::vector<Kept>& kept_;
};

// Appends rows [begin, end) of the layer's prompt.
void append_rows(Device& device, const AttentionCase& layer, std::int64_t begin, std::int64_t end,
                 AttendedKv& kv) {
  const std::int64_t count = end - begin;
  const KvView view = kv.room(count);
  for (std::size_t head = 0; head < view.heads.size(); ++head) {
    const std::int64_t from = layer.kv.heads[head].offset + begin;
    const std::int64_t to = view.heads[head].offset + view.heads[head].len;
    device.backend().upload(layer.kv.keys.rows_at(from, count).bytes(),
                            view.keys.rows_at(to, count));
    device.backend().upload(layer.kv.values.rows_at(from, count).bytes(),
                            view.values.rows_at(to, count));
  }
  kv.advance(count);
}

// Rows of q stand at positions first, first + 1, ...
void observe(Device& device, const HostTensor& q, std::int64_t first,
             const ObservedQueries& observed) {
  const std::int64_t begin = std::max(observed.first, first);
  const std::int64_t count = first + q.rows() - begin;
  if (observed.moments.rows() == 0 || count <= 0) {
    return;
  }
  const DeviceTensor angles = device.garbage(DType::kF32, count, observed.moments.cols());
  device.backend().rope_angles(observed.inverse_freq, Position{static_cast<std::int32_t>(begin)},
                               angles.view);
  device.backend().observe_queries(device.put(q.rows_at(begin - first, count)).view, angles.view,
                                   begin - observed.first, observed.moments);
}

// What attention would have left of the window, where it was asked to.
void leave_lse(Device& device, const ActiveLayer& active) {
  if (active.window_lse().rows() > 0) {
    const DeviceTensor q = device.put(device.get(active.window_queries()));
    device.backend().attend(q.view, active.kv().view(),
                            {.lse = {active.window_lse(), 0, q.view.rows()}});
  }
}

ActiveLayer fill_active(Device& device, CacheManager& cache, const AttentionCase& layer,
                        const QueriesWanted& wanted) {
  const std::int64_t window_len = wanted.window_len;
  auto opened = cache.open_active(wanted, /*grows=*/false);
  EXPECT_TRUE(opened.ok());
  ActiveLayer active = std::move(opened).value();
  append_rows(device, layer, 0, layer.q.rows(), active.kv());
  const std::int64_t rows = std::min(window_len, layer.q.rows());
  if (rows > 0) {
    const HostTensor newest = layer.q.rows_at(layer.q.rows() - rows, rows);
    device.backend().upload(newest.bytes(),
                            active.window_queries().rows_at(window_len - rows, rows));
  }
  observe(device, layer.q, 0, active.observed());
  leave_lse(device, active);
  return active;
}

void read_positions(Device& device, const CompactLayer& layer, Kept& kept) {
  for (const std::int64_t len : layer.retained_lens()) {
    std::vector<std::int32_t> all(static_cast<std::size_t>(len));
    std::iota(all.begin(), all.end(), 0);
    kept.positions.push_back(std::move(all));
  }
  if (layer.keeps_all()) {
    return;
  }
  const HostTensor positions = device.get(layer.positions().entries);
  std::int64_t entry = 0;
  for (std::vector<std::int32_t>& head : kept.positions) {
    for (std::int32_t& position : head) {
      position = static_cast<std::int32_t>(positions.at(0, entry++));
    }
  }
  EXPECT_EQ(entry, positions.cols());
}

void read_rows(Device& device, const CompactLayer& layer, Kept& kept) {
  const KvView view = layer.kv().view();
  kept.keys = HostTensor(view.keys.dtype(), layer.total_retained(), view.head_dim());
  kept.values = kept.keys;
  std::int64_t row = 0;
  for (std::size_t head = 0; head < view.heads.size(); ++head) {
    const HeadSpan& span = view.heads[head];
    EXPECT_EQ(span.len, layer.retained_lens()[head]);
    kept.keys.put_rows(row, device.get(view.keys.rows_at(span.offset, span.len)));
    kept.values.put_rows(row, device.get(view.values.rows_at(span.offset, span.len)));
    row += span.len;
  }
}

}  // namespace

Prompt random_prompt(Random& random, const PromptSize& size, Inputs inputs) {
  Prompt prompt;
  prompt.shape = {.num_layers = size.num_layers,
                  .num_kv_heads = size.num_kv_heads,
                  .head_dim = size.head_dim,
                  .dtype = DType::kBF16,
                  .prompt_len = size.prompt_len,
                  .growth_len = 3};
  prompt.group = size.group;
  for (std::int64_t layer = 0; layer < size.num_layers; ++layer) {
    prompt.layers.push_back(attention_case(random, DType::kBF16,
                                           {size.num_kv_heads, size.group, size.head_dim},
                                           {size.prompt_len}, size.prompt_len, inputs));
  }
  return prompt;
}

std::vector<Kept> compress_prompt(Device& device, const Prompt& prompt, const Selector& selector,
                                  std::int64_t key_block_len,
                                  std::optional<std::int64_t> lse_margin) {
  const ScoreRecipe recipe = selector.score_recipe(prompt.shape.prompt_len);
  std::vector<std::int64_t> budgets(prompt.layers.size());
  selector.layer_budgets(prompt.shape.prompt_len, budgets);
  std::vector<Kept> kept(prompt.layers.size());
  const DeviceTensor freq = device.put(inverse_frequencies(prompt.shape.head_dim));
  ScoreCollector collector(device, kept);
  CacheManager cache(device.backend(), prompt.shape);
  Compressor compressor(device.backend(), recipe, prompt.shape.num_kv_heads * prompt.group,
                        key_block_len, &collector);
  for (std::size_t layer = 0; layer < kept.size(); ++layer) {
    const std::int64_t before = prompt.shape.prompt_len - recipe.window_len;
    const bool with_lse = lse_margin && before >= 0 && recipe.window_len > 0;
    const std::int64_t margin = with_lse ? std::min(*lse_margin, before) : 0;
    const ActiveLayer active = fill_active(device, cache, prompt.layers[layer],
                                           {.q_dim = prompt.layers[layer].q.cols(),
                                            .window_len = recipe.window_len + margin,
                                            .window_lse = with_lse,
                                            .moments = recipe.observes_all(),
                                            .first = recipe.num_sinks,
                                            .inverse_freq = freq.view});
    const Status status = compressor.compress_and_commit(active, budgets[layer], cache);
    EXPECT_TRUE(status.ok());
    const CompactLayer& committed = cache.layer(static_cast<std::int64_t>(layer));
    read_positions(device, committed, kept[layer]);
    read_rows(device, committed, kept[layer]);
  }
  return kept;
}

namespace {

// The active layer over what the layer's cache holds, with the chunk and its queries.
ActiveLayer fill_over(Device& device, const AttentionCase& layer, const ScoreRecipe& recipe,
                      DeviceView inverse_freq, CacheManager& cache, const ChunkKept& chunk) {
  const std::int64_t len = chunk.end - chunk.begin;
  const std::int64_t window_len = std::min(recipe.window_len, len);
  auto opened = cache.open_active_over(
      chunk.layer, {.chunk_len = len,
                    .end = chunk.end,
                    .wanted = {.q_dim = layer.q.cols(),
                               .window_len = window_len,
                               // one way or the other
                               .window_lse = (chunk.begin + chunk.layer) % 2 == 1,
                               .moments = recipe.observes_all(),
                               .first = std::max(recipe.num_sinks, chunk.begin),
                               .inverse_freq = inverse_freq}});
  EXPECT_TRUE(opened.ok());
  ActiveLayer active = std::move(opened).value();
  append_rows(device, layer, chunk.begin, chunk.end, active.kv());
  if (window_len > 0) {
    const HostTensor newest = layer.q.rows_at(active.window_begin(), window_len);
    device.backend().upload(newest.bytes(), active.window_queries());
    leave_lse(device, active);
  }
  observe(device, layer.q.rows_at(chunk.begin, len), chunk.begin, active.observed());
  return active;
}

void run_chunk(Device& device, const Prompt& prompt, Compressor& compressor,
               const ScoreRecipe& recipe, std::int64_t budget, CacheManager& cache,
               const ChunkKept& chunk) {
  const AttentionCase& layer = prompt.layers[static_cast<std::size_t>(chunk.layer)];
  const CompactLayer& before = cache.layer(chunk.layer);
  const std::int64_t len = chunk.end - chunk.begin;
  if (before.keeps_all() && chunk.end <= budget) {
    append_rows(device, layer, chunk.begin, chunk.end, cache.growing(chunk.layer));
    cache.count_appended(chunk.layer, len);
    return;
  }
  const DeviceTensor freq = device.put(inverse_frequencies(prompt.shape.head_dim));
  const ActiveLayer active = fill_over(device, layer, recipe, freq.view, cache, chunk);
  const CutRows rows{.kv = active.kv().view(),
                     .queries = active.window_queries(),
                     .window_lse = active.window_lse(),
                     .observed = active.observed(),
                     .heads_differ = recipe.even_share < 1 && !before.keeps_all()};
  const Result<Retained> slots = compressor.select(rows, budget, chunk.layer, cache.cut_lens());
  ASSERT_TRUE(slots.ok());
  cache.replace(chunk.layer, active, slots.value(),
                Position{static_cast<std::int32_t>(chunk.begin)});
}

}  // namespace

void compress_by_chunk(Device& device, const Prompt& prompt, const Selector& selector,
                       std::int64_t chunk_len, std::int64_t key_block_len,
                       const std::function<void(const ChunkKept&)>& visit) {
  const ScoreRecipe recipe = selector.score_recipe(prompt.shape.prompt_len);
  const std::int64_t prompt_len = prompt.shape.prompt_len;
  std::vector<std::int64_t> budgets(prompt.layers.size());
  selector.layer_budgets(prompt_len, budgets);
  CacheManager cache(device.backend(), prompt.shape);
  ASSERT_TRUE(cache.open_all(budgets, prompt_len).ok());
  Compressor compressor(device.backend(), recipe, prompt.shape.num_kv_heads * prompt.group,
                        key_block_len, nullptr);
  for (std::int64_t begin = 0; begin < prompt_len; begin += chunk_len) {
    for (std::size_t layer = 0; layer < budgets.size(); ++layer) {
      ChunkKept chunk{.layer = static_cast<std::int64_t>(layer),
                      .begin = begin,
                      .end = std::min(begin + chunk_len, prompt_len),
                      .kept = {}};
      run_chunk(device, prompt, compressor, recipe, budgets[layer], cache, chunk);
      read_positions(device, cache.layer(chunk.layer), chunk.kept);
      read_rows(device, cache.layer(chunk.layer), chunk.kept);
      visit(chunk);
    }
  }
}

}  // namespace tidekv::conformance
