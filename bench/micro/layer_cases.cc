// The rest of a decoder layer, and copies: bound by memory, their operands beyond the caches.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cases.h"

namespace tidekv::micro {
namespace {

constexpr std::int64_t kRows = 512;  // of a chunk
constexpr std::array<DType, 2> kActivationTypes = {DType::kBF16, DType::kF32};
constexpr std::array<DType, 11> kTableTypes = {DType::kBF16, DType::kF16, DType::kF32, DType::kQ80,
                                               DType::kQ40,  DType::kQ41, DType::kQ50, DType::kQ51,
                                               DType::kQ4K,  DType::kQ5K, DType::kQ6K};

struct Model {
  std::int64_t hidden_dim = 0;
  std::int64_t ffn_dim = 0;
  std::int64_t head_dim = 0;
  std::int64_t num_q_heads = 0;
  std::int64_t num_kv_heads = 0;
};

// SmolLM2-135M and Llama-3.1-8B.
constexpr std::array<Model, 2> kModels = {{{576, 1536, 64, 9, 3}, {4096, 14336, 128, 32, 8}}};

double bytes_of(DType dtype, std::int64_t rows, std::int64_t cols) {
  return static_cast<double>(rows * row_bytes(dtype, cols));
}

void add_rms_norm(std::vector<Case>& cases, const Model& model, DType dtype) {
  struct Operands {
    Tensors x;
    Tensors weight;
    Tensors out;
  };
  const auto prepare = [dtype, dim = model.hidden_dim](Device& device) {
    return operation(
        Operands{device.make(dtype, kRows, dim, Copies::kBeyondCache), device.make(dtype, 1, dim),
                 device.make(dtype, kRows, dim, Copies::kBeyondCache)},
        [backend = &device.backend()](const Operands& on, std::int64_t call) {
          backend->rms_norm(on.x.at(call), on.weight.at(0), 1e-5F, on.out.at(call));
        });
  };
  cases.push_back({fmt::format("rms_norm/m{}/{}/{}", kRows, model.hidden_dim, name_of(dtype)),
                   {.bytes = 2 * bytes_of(dtype, kRows, model.hidden_dim)},
                   prepare});
}

// Queries, keys and values of a chunk, or of a generated token.
void add_project_heads(std::vector<Case>& cases, const Model& model, DType weights, Phase phase) {
  struct Operands {
    Tensors a;
    Tensors w;  // of queries, then keys, then values
    Tensors angles;
    Tensors queries;
    Caches kv;
  };
  const std::int64_t q_dim = model.num_q_heads * model.head_dim;
  const std::int64_t kv_dim = model.num_kv_heads * model.head_dim;
  const std::int64_t rows = phase == Phase::kDecode ? 1 : kRows;
  if (model.hidden_dim % traits_of(weights).block_len != 0) {
    return;
  }
  const auto prepare = [=](Device& device) {
    const Copies copies = phase == Phase::kDecode ? Copies::kBeyondCache : Copies::kOne;
    const auto run = [=, backend = &device.backend()](const Operands& on, std::int64_t call) {
      const DeviceView w = on.w.at(call);
      backend->project_heads(on.a.at(0),
                             {.q = {w.rows_at(0, q_dim)},
                              .k = {w.rows_at(q_dim, kv_dim)},
                              .v = {w.rows_at(q_dim + kv_dim, kv_dim)},
                              .angles = on.angles.at(0),
                              .phase = phase},
                             on.queries.at(0), on.kv.empty_at(call));
    };
    return operation(
        Operands{device.make(DType::kBF16, rows, model.hidden_dim),
                 device.make(weights, q_dim + 2 * kv_dim, model.hidden_dim, copies),
                 device.make(DType::kF32, rows, model.head_dim),
                 device.make(DType::kBF16, rows, q_dim),
                 device.make_caches(DType::kBF16, {model.num_kv_heads, 8192, model.head_dim},
                                    Copies::kBeyondCache)},
        run);
  };
  Cost cost{.flops = 2.0 * static_cast<double>(rows * model.hidden_dim * (q_dim + 2 * kv_dim))};
  if (rows == 1) {  // bound by reading the weights
    cost.bytes = bytes_of(weights, q_dim + 2 * kv_dim, model.hidden_dim);
  }
  cases.push_back(
      {fmt::format("project_heads{}/m{}/{}/d{}h{}kv{}/bf16*{}",
                   phase == Phase::kDecode ? "_decode" : "", rows, model.hidden_dim, model.head_dim,
                   model.num_q_heads, model.num_kv_heads, name_of(weights)),
       cost, prepare});
}

void add_rope_angles(std::vector<Case>& cases, const Model& model) {
  struct Operands {
    Tensors inverse_freq;
    Tensors angles;
  };
  const auto prepare = [dim = model.head_dim](Device& device) {
    return operation(Operands{device.make(DType::kF32, 1, dim / 2),
                              device.make(DType::kF32, kRows, dim, Copies::kBeyondCache)},
                     [backend = &device.backend()](const Operands& on, std::int64_t call) {
                       backend->rope_angles(on.inverse_freq.at(0), Position{4096},
                                            on.angles.at(call));
                     });
  };
  cases.push_back({fmt::format("rope_angles/m{}/d{}", kRows, model.head_dim),
                   {.bytes = bytes_of(DType::kF32, kRows, model.head_dim)},
                   prepare});
}

void add_swiglu(std::vector<Case>& cases, const Model& model, DType dtype) {
  struct Operands {
    Tensors gate;
    Tensors up;
  };
  const auto prepare = [dtype, dim = model.ffn_dim](Device& device) {
    return operation(Operands{device.make(dtype, kRows, dim, Copies::kBeyondCache),
                              device.make(dtype, kRows, dim, Copies::kBeyondCache)},
                     [backend = &device.backend()](const Operands& on, std::int64_t call) {
                       backend->swiglu(on.gate.at(call), on.up.at(call), on.gate.at(call));
                     });
  };
  cases.push_back({fmt::format("swiglu/m{}/{}/{}", kRows, model.ffn_dim, name_of(dtype)),
                   {.bytes = 3 * bytes_of(dtype, kRows, model.ffn_dim)},
                   prepare});
}

// Rows spread over the whole table; of a quantised one they are expanded.
void add_embed(std::vector<Case>& cases, std::int64_t dim, DType table, DType dtype) {
  struct Operands {
    Tensors table;
    Tensors ids;
    Tensors out;
  };
  constexpr std::int64_t kVocabSize = 49152;
  if (dim % traits_of(table).block_len != 0) {
    return;
  }
  const auto prepare = [dim, table, dtype](Device& device) {
    std::vector<std::int32_t> ids;
    for (std::int64_t i = 0; i < kRows; ++i) {
      ids.push_back(static_cast<std::int32_t>(i * 7919 % kVocabSize));
    }
    return operation(
        Operands{device.make(table, kVocabSize, dim, Copies::kBeyondCache), device.make_ids(ids, 1),
                 device.make(dtype, kRows, dim, Copies::kBeyondCache)},
        [backend = &device.backend()](const Operands& on, std::int64_t call) {
          backend->embed(on.table.at(call), on.ids.at(0), on.out.at(call));
        });
  };
  cases.push_back({fmt::format("embed/m{}/{}/{}<-{}", kRows, dim, name_of(dtype), name_of(table)),
                   {.bytes = bytes_of(table, kRows, dim) + bytes_of(dtype, kRows, dim)},
                   prepare});
}

void add_copy(std::vector<Case>& cases, const Model& model) {
  struct Operands {
    Tensors from;
    Tensors to;
  };
  const auto prepare = [dim = model.hidden_dim](Device& device) {
    return operation(Operands{device.make(DType::kBF16, kRows, dim, Copies::kBeyondCache),
                              device.make(DType::kBF16, kRows, dim, Copies::kBeyondCache)},
                     [backend = &device.backend()](const Operands& on, std::int64_t call) {
                       backend->copy(on.from.at(call), on.to.at(call));
                     });
  };
  cases.push_back({fmt::format("copy/m{}/{}/bf16", kRows, model.hidden_dim),
                   {.bytes = 2 * bytes_of(DType::kBF16, kRows, model.hidden_dim)},
                   prepare});
}

// Between the host and the device; on a CPU copies like any other.
void add_transfers(std::vector<Case>& cases, const Model& model) {
  struct Operands {
    std::vector<std::byte> host;
    Tensors device;
  };
  const std::int64_t dim = model.hidden_dim;
  const auto operands = [dim](Device& device) {
    Tensors tensors = device.make(DType::kBF16, kRows, dim, Copies::kBeyondCache);
    return Operands{std::vector<std::byte>(static_cast<std::size_t>(tensors.at(0).num_bytes())),
                    std::move(tensors)};
  };
  const Cost cost{.bytes = 2 * bytes_of(DType::kBF16, kRows, dim)};
  cases.push_back({fmt::format("upload/m{}/{}/bf16", kRows, dim), cost, [operands](Device& device) {
                     return operation(operands(device), [backend = &device.backend()](
                                                            const Operands& on, std::int64_t call) {
                       backend->upload(on.host, on.device.at(call));
                     });
                   }});
  cases.push_back(
      {fmt::format("download/m{}/{}/bf16", kRows, dim), cost, [operands](Device& device) {
         return operation(operands(device),
                          [backend = &device.backend()](Operands& on, std::int64_t call) {
                            backend->download(on.device.at(call), on.host);
                          });
       }});
}

}  // namespace

void add_layer_cases(std::vector<Case>& cases) {
  for (const Model& model : kModels) {
    for (const DType dtype : kActivationTypes) {
      add_rms_norm(cases, model, dtype);
      add_swiglu(cases, model, dtype);
    }
    for (const DType weights : kTableTypes) {
      add_project_heads(cases, model, weights, Phase::kPrefill);
      add_project_heads(cases, model, weights, Phase::kDecode);
    }
    add_rope_angles(cases, model);
    add_copy(cases, model);
    add_transfers(cases, model);
    for (const DType table : kTableTypes) {
      add_embed(cases, model.hidden_dim, table, DType::kBF16);
    }
  }
}

}  // namespace tidekv::micro
