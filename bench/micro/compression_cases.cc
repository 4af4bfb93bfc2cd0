// Layer-end compression (Alg. 2): scores of the prompt's keys for its last window, their pooling,
// the choice of the best, and the copy of what is kept.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cases.h"

namespace tidekv::micro {
namespace {

constexpr std::int64_t kPromptLen = 8192;
constexpr std::int64_t kWindowLen = 32;
constexpr std::int64_t kKeyBlockLen = 1024;
constexpr std::int64_t kBest = 1024;  // keys chosen by score
constexpr std::int64_t kPrefixLen = kPromptLen - kWindowLen;

struct Heads {
  std::int64_t head_dim = 0;
  std::int64_t num_q_heads = 0;
  std::int64_t num_kv_heads = 0;
};

// SmolLM2-135M and Llama-3.1-8B.
constexpr std::array<Heads, 2> kHeads = {{{64, 9, 3}, {128, 32, 8}}};

std::string heads_text(const Heads& heads) {
  return fmt::format("d{}h{}kv{}", heads.head_dim, heads.num_q_heads, heads.num_kv_heads);
}

double floats_bytes(std::int64_t count) { return 4.0 * static_cast<double>(count); }

struct Scoring {
  Tensors q;
  Caches kv;
  Tensors lse;
  Tensors weights;
};

Scoring scoring_operands(Device& device, const Heads& heads, DType dtype) {
  Scoring operands{
      device.make(dtype, kWindowLen, heads.num_q_heads * heads.head_dim),
      device.make_caches(dtype, {heads.num_kv_heads, kPromptLen, heads.head_dim}, Copies::kOne),
      device.make(DType::kF32, 2 * heads.num_q_heads, kWindowLen),
      device.make(DType::kF32, heads.num_q_heads * kWindowLen, kKeyBlockLen)};
  device.backend().window_lse(operands.q.at(0), operands.kv.at(0), operands.lse.at(0));
  return operands;
}

void add_window_lse(std::vector<Case>& cases, const Heads& heads, DType dtype) {
  const double pairs = static_cast<double>(heads.num_q_heads * kWindowLen) *
                       (static_cast<double>(kPrefixLen) + static_cast<double>(kWindowLen + 1) / 2);
  cases.push_back({fmt::format("window_lse/q{}/k{}/{}/{}", kWindowLen, kPromptLen,
                               heads_text(heads), name_of(dtype)),
                   {.flops = 2.0 * static_cast<double>(heads.head_dim) * pairs},
                   [heads, dtype](Device& device) {
                     return operation(
                         scoring_operands(device, heads, dtype),
                         [backend = &device.backend()](const Scoring& on, std::int64_t) {
                           backend->window_lse(on.q.at(0), on.kv.at(0), on.lse.at(0));
                         });
                   }});
}

void add_score_keys(std::vector<Case>& cases, const Heads& heads, DType dtype) {
  const double pairs = static_cast<double>(heads.num_q_heads * kWindowLen * kKeyBlockLen);
  cases.push_back({fmt::format("score_keys/q{}/k{}/{}/{}", kWindowLen, kKeyBlockLen,
                               heads_text(heads), name_of(dtype)),
                   {.flops = 2.0 * static_cast<double>(heads.head_dim) * pairs},
                   [heads, dtype](Device& device) {
                     return operation(
                         scoring_operands(device, heads, dtype),
                         [backend = &device.backend()](const Scoring& on, std::int64_t call) {
                           const std::int64_t blocks = kPromptLen / kKeyBlockLen;
                           const std::int64_t first = call % blocks * kKeyBlockLen;
                           backend->score_keys(on.q.at(0), on.kv.at(0), on.lse.at(0),
                                               {first, first + kKeyBlockLen}, on.weights.at(0));
                         });
                   }});
}

struct Pooling {
  Tensors weights;
  Tensors raw;
  Tensors scores;
};

void add_pool_scores(std::vector<Case>& cases, const Heads& heads) {
  const PoolRecipe recipe;
  const std::int64_t halo = recipe.kernel_len / 2;
  // A block in the middle of the prompt, with the keys around it that pooling looks at.
  const KeyRange wanted{kKeyBlockLen, 2 * kKeyBlockLen};
  const Backend::PoolRanges ranges{.scored = {wanted.begin - halo, wanted.end + halo},
                                   .wanted = wanted,
                                   .prefix_len = kPrefixLen,
                                   .window_len = kWindowLen};
  const std::int64_t rows = heads.num_q_heads * kWindowLen;
  const std::int64_t scored = ranges.scored.len();
  const auto prepare = [=](Device& device) {
    Pooling operands{device.make(DType::kF32, rows, scored, Copies::kBeyondCache),
                     device.make(DType::kF32, heads.num_kv_heads, scored),
                     device.make(DType::kF32, heads.num_kv_heads, kKeyBlockLen)};
    return operation(std::move(operands), [backend = &device.backend(), recipe, ranges](
                                              const Pooling& on, std::int64_t call) {
      backend->pool_scores(on.weights.at(call), recipe, ranges, on.raw.at(0), on.scores.at(0));
    });
  };
  cases.push_back(
      {fmt::format("pool_scores/q{}/k{}/{}", kWindowLen, kKeyBlockLen, heads_text(heads)),
       {.bytes = floats_bytes(rows * scored + heads.num_kv_heads * kKeyBlockLen)},
       prepare});
}

void add_key_norms(std::vector<Case>& cases, const Heads& heads, DType dtype) {
  struct Operands {
    Caches caches;
    Tensors scores;
  };
  const auto prepare = [heads, dtype](Device& device) {
    Operands operands{device.make_caches(dtype, {heads.num_kv_heads, kPromptLen, heads.head_dim},
                                         Copies::kBeyondCache),
                      device.make(DType::kF32, heads.num_kv_heads, kKeyBlockLen)};
    return operation(
        std::move(operands), [backend = &device.backend()](const Operands& on, std::int64_t call) {
          backend->score_key_norms(on.caches.at(call), {0, kKeyBlockLen}, on.scores.at(0));
        });
  };
  const std::int64_t rows = heads.num_kv_heads * kKeyBlockLen;
  cases.push_back(
      {fmt::format("score_key_norms/k{}/{}/{}", kKeyBlockLen, heads_text(heads), name_of(dtype)),
       {.bytes = static_cast<double>(rows * row_bytes(dtype, heads.head_dim))},
       prepare});
}

struct Choosing {
  Tensors scores;
  Tensors best_scores;
  Tensors best_positions;
  Tensors retained;
  std::vector<std::int64_t> best_lens;

  TopKState state(std::int64_t num_offered) const {
    return {best_scores.at(0), best_positions.at(0), best_lens, num_offered};
  }
};

Choosing choosing_operands(Device& device, std::int64_t num_kv_heads) {
  const auto heads = static_cast<std::size_t>(num_kv_heads);
  return {device.make(DType::kF32, num_kv_heads, kKeyBlockLen, Copies::kBeyondCache),
          device.make(DType::kF32, 1, num_kv_heads * kBest),
          device.make(DType::kI32, 1, num_kv_heads * kBest),
          device.make(DType::kI32, 1, num_kv_heads * (kBest + kWindowLen)),
          std::vector<std::int64_t>(heads, kBest)};
}

// A prompt's blocks one after the other, then the next prompt's.
void add_topk_merge(std::vector<Case>& cases, std::int64_t num_kv_heads) {
  cases.push_back({fmt::format("topk_merge/best{}/k{}/kv{}", kBest, kKeyBlockLen, num_kv_heads),
                   {.bytes = floats_bytes(num_kv_heads * kKeyBlockLen)},
                   [num_kv_heads](Device& device) {
                     return operation(
                         choosing_operands(device, num_kv_heads),
                         [backend = &device.backend()](const Choosing& on, std::int64_t call) {
                           const std::int64_t blocks = kPromptLen / kKeyBlockLen;
                           const std::int64_t offered = call % blocks * kKeyBlockLen;
                           backend->topk_merge(on.scores.at(call), offered, on.state(offered));
                         });
                   }});
}

// Reads k positions and writes them sorted, the window behind them.
void add_topk_take(std::vector<Case>& cases, std::int64_t num_kv_heads) {
  const std::int64_t moved = num_kv_heads * (2 * kBest + kWindowLen);
  cases.push_back({fmt::format("topk_take/best{}/kv{}", kBest, num_kv_heads),
                   {.bytes = floats_bytes(moved)},
                   [num_kv_heads](Device& device) {
                     return operation(
                         choosing_operands(device, num_kv_heads),
                         [backend = &device.backend()](const Choosing& on, std::int64_t) {
                           backend->topk_take(on.state(kPrefixLen),
                                              {.num_recent = kWindowLen, .prompt_len = kPromptLen},
                                              on.retained.at(0));
                         });
                   }});
}

struct Gathering {
  Caches from;
  Tensors slots;
  std::vector<std::int64_t> lens;
  Caches to;
};

// Every eighth row of each head: far apart, ascending, as a selection is.
std::vector<std::int32_t> spread_slots(std::int64_t num_kv_heads) {
  std::vector<std::int32_t> slots;
  for (std::int64_t i = 0; i < num_kv_heads * kBest; ++i) {
    slots.push_back(static_cast<std::int32_t>(i % kBest * (kPromptLen / kBest)));
  }
  return slots;
}

struct KeyScoring {
  Caches caches;
  Tensors anchors;
  Tensors scores;
};

KeyScoring key_scoring(Device& device, const Heads& heads, DType dtype) {
  return {device.make_caches(dtype, {heads.num_kv_heads, kPromptLen, heads.head_dim},
                             Copies::kBeyondCache),
          device.make(DType::kF32, heads.num_kv_heads, heads.head_dim),
          device.make(DType::kF32, heads.num_kv_heads, kKeyBlockLen)};
}

void add_directions(std::vector<Case>& cases, const Heads& heads, DType dtype) {
  const auto bytes_of = [&](std::int64_t keys) {
    return static_cast<double>(heads.num_kv_heads * keys * row_bytes(dtype, heads.head_dim));
  };
  const std::string what = fmt::format("{}/{}", heads_text(heads), name_of(dtype));
  cases.push_back({fmt::format("mean_directions/k{}/{}", kPromptLen, what),
                   {.bytes = bytes_of(kPromptLen)},
                   [heads, dtype](Device& device) {
                     return operation(
                         key_scoring(device, heads, dtype),
                         [backend = &device.backend()](const KeyScoring& on, std::int64_t call) {
                           backend->mean_directions(on.caches.at(call), on.anchors.at(0));
                         });
                   }});
  cases.push_back({fmt::format("score_directions/k{}/{}", kKeyBlockLen, what),
                   {.bytes = bytes_of(kKeyBlockLen)},
                   [heads, dtype](Device& device) {
                     return operation(
                         key_scoring(device, heads, dtype),
                         [backend = &device.backend()](const KeyScoring& on, std::int64_t call) {
                           backend->score_directions(on.caches.at(call), on.anchors.at(0),
                                                     {0, kKeyBlockLen}, on.scores.at(0));
                         });
                   }});
}

struct Expecting {
  Caches caches;
  Tensors queries;
  Tensors angles;
  Tensors inverse_freq;
  Tensors moments;
  Tensors expected;
  Tensors lse;
  Tensors scores;
};

constexpr std::int64_t kObservedLen = 512;

Expecting expecting_operands(Device& device, const Heads& heads, DType dtype) {
  const std::int64_t rows = heads.num_q_heads * (heads.head_dim + 1);
  return {device.make_caches(dtype, {heads.num_kv_heads, kPromptLen, heads.head_dim},
                             Copies::kBeyondCache),
          device.make(dtype, kObservedLen, heads.num_q_heads * heads.head_dim),
          device.make(DType::kF32, kObservedLen, heads.head_dim),
          device.make(DType::kF32, 1, heads.head_dim / 2),
          device.make(DType::kF32, rows, heads.head_dim),
          device.make(DType::kF32, rows, heads.head_dim),
          device.make(DType::kF32, 2 * heads.num_q_heads, 1),
          device.make(DType::kF32, heads.num_kv_heads, kKeyBlockLen)};
}

// Products with the covariance are most of the work.
void add_expected_attention(std::vector<Case>& cases, const Heads& heads, DType dtype) {
  const auto flops_of = [&](std::int64_t rows) {
    return static_cast<double>(2 * rows * heads.num_q_heads * heads.head_dim * heads.head_dim);
  };
  const auto add = [&](std::string_view name, std::int64_t rows, const auto& run) {
    cases.push_back({fmt::format("{}/k{}/{}/{}", name, rows, heads_text(heads), name_of(dtype)),
                     {.flops = flops_of(rows)},
                     [heads, dtype, run](Device& device) {
                       return operation(expecting_operands(device, heads, dtype),
                                        [backend = &device.backend(), run](const Expecting& on,
                                                                           std::int64_t call) {
                                          run(*backend, on, call);
                                        });
                     }});
  };
  add("observe_queries", kObservedLen, [](Backend& backend, const Expecting& on, std::int64_t) {
    backend.observe_queries(on.queries.at(0), on.angles.at(0), 0, on.moments.at(0));
  });
  add("expect_queries", kObservedLen, [](Backend& backend, const Expecting& on, std::int64_t) {
    backend.expect_queries(on.moments.at(0), kObservedLen, on.inverse_freq.at(0),
                           {Position{0}, kObservedLen}, on.expected.at(0));
  });
  add("expected_lse", kKeyBlockLen, [](Backend& backend, const Expecting& on, std::int64_t call) {
    backend.expected_lse(on.caches.at(call), on.expected.at(0), {0, kKeyBlockLen}, on.lse.at(0));
  });
  add("score_expected", kKeyBlockLen, [](Backend& backend, const Expecting& on, std::int64_t call) {
    backend.score_expected(on.caches.at(call), on.expected.at(0), on.lse.at(0), {0, kKeyBlockLen},
                           on.scores.at(0));
  });
}

void add_average_units(std::vector<Case>& cases, std::int64_t num_kv_heads) {
  constexpr std::int64_t kUnitLen = 16;
  cases.push_back({fmt::format("average_units/u{}/k{}/kv{}", kUnitLen, kKeyBlockLen, num_kv_heads),
                   {.bytes = floats_bytes(num_kv_heads * kKeyBlockLen)},
                   [num_kv_heads](Device& device) {
                     struct Operands {
                       Tensors scores;
                       Tensors averages;
                     };
                     return operation(
                         Operands{device.make(DType::kF32, num_kv_heads, kKeyBlockLen),
                                  device.make(DType::kF32, num_kv_heads, kKeyBlockLen / kUnitLen)},
                         [backend = &device.backend()](const Operands& on, std::int64_t) {
                           backend->average_units(on.scores.at(0), kUnitLen, on.averages.at(0));
                         });
                   }});
}

// Slots, positions and counts of caches that were cut before. Ids are below 256.
struct CutOperands {
  Caches cache;
  Tensors ids;
  Tensors low_slots;  // ids, too: named by position they stay such
  Tensors slots;
  Tensors counts;
  std::vector<std::int64_t> lens;
};

CutOperands cut_operands(Device& device, const Heads& heads, DType dtype) {
  const std::vector<std::int32_t> slots = spread_slots(heads.num_kv_heads);
  return {device.make_caches(dtype, {heads.num_kv_heads, kPromptLen, heads.head_dim},
                             Copies::kBeyondCache),
          device.make(DType::kI32, 1, heads.num_kv_heads * kBest),
          device.make(DType::kI32, 1, heads.num_kv_heads * kBest),
          device.make_ids(slots, 1),
          device.make(DType::kI32, 1, heads.num_kv_heads),
          std::vector<std::int64_t>(static_cast<std::size_t>(heads.num_kv_heads), kBest)};
}

void add_cuts(std::vector<Case>& cases, const Heads& heads, DType dtype) {
  const std::int64_t rows = heads.num_kv_heads * kBest;
  const double moved = 4.0 * static_cast<double>(rows * row_bytes(dtype, heads.head_dim));
  const std::string what = fmt::format("n{}/{}/{}", kBest, heads_text(heads), name_of(dtype));
  const auto add = [&](const std::string& name, double bytes, const auto& run) {
    cases.push_back(
        {fmt::format("{}/{}", name, what), {.bytes = bytes}, [heads, dtype, run](Device& device) {
           return operation(
               cut_operands(device, heads, dtype),
               [backend = &device.backend(), run](const CutOperands& on, std::int64_t call) {
                 run(*backend, on, call);
               });
         }});
  };
  add("count_ids", floats_bytes(rows), [](Backend& backend, const CutOperands& on, std::int64_t) {
    backend.count_ids(on.ids.at(0), 256, on.counts.at(0));
  });
  add("keep_rows", moved, [](Backend& backend, const CutOperands& on, std::int64_t call) {
    backend.keep_rows({on.slots.at(0), on.lens}, on.cache.at(call));
  });
  add("slots_to_positions", floats_bytes(2 * rows),
      [](Backend& backend, const CutOperands& on, std::int64_t) {
        backend.slots_to_positions({on.ids.at(0), on.lens}, Position{kPromptLen},
                                   {on.low_slots.at(0), on.lens});
      });
}

void add_gather_rows(std::vector<Case>& cases, const Heads& heads, DType dtype) {
  const auto prepare = [heads, dtype](Device& device) {
    const auto caches = [&](std::int64_t len) {
      return device.make_caches(dtype, {heads.num_kv_heads, len, heads.head_dim},
                                Copies::kBeyondCache);
    };
    Gathering operands{
        caches(kPromptLen), device.make_ids(spread_slots(heads.num_kv_heads), 1),
        std::vector<std::int64_t>(static_cast<std::size_t>(heads.num_kv_heads), kBest),
        caches(kBest)};
    return operation(
        std::move(operands), [backend = &device.backend()](const Gathering& on, std::int64_t call) {
          backend->gather_rows(on.from.at(call), {on.slots.at(0), on.lens}, on.to.empty_at(call));
        });
  };
  const std::int64_t kept = 2 * heads.num_kv_heads * kBest;  // keys and values
  cases.push_back({fmt::format("gather_rows/n{}of{}/{}/{}", kBest, kPromptLen, heads_text(heads),
                               name_of(dtype)),
                   {.bytes = 2.0 * static_cast<double>(kept * row_bytes(dtype, heads.head_dim))},
                   prepare});
}

}  // namespace

void add_compression_cases(std::vector<Case>& cases) {
  for (const Heads& heads : kHeads) {
    for (const DType dtype : {DType::kBF16, DType::kF32}) {
      add_window_lse(cases, heads, dtype);
      add_score_keys(cases, heads, dtype);
      add_key_norms(cases, heads, dtype);
      add_directions(cases, heads, dtype);
      add_expected_attention(cases, heads, dtype);
      add_cuts(cases, heads, dtype);
      add_gather_rows(cases, heads, dtype);
    }
    add_pool_scores(cases, heads);
    add_average_units(cases, heads.num_kv_heads);
    add_topk_merge(cases, heads.num_kv_heads);
    add_topk_take(cases, heads.num_kv_heads);
  }
}

}  // namespace tidekv::micro
