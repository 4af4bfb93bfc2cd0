// Causal attention of a chunk at the end of a long prompt, and of one generated token; of one over
// keys and values in few bits, and how rows get there.
#include <fmt/format.h>

#include <array>

#include "cases.h"

namespace tidekv::micro {
namespace {

struct Heads {
  std::int64_t head_dim = 0;
  std::int64_t num_q_heads = 0;
  std::int64_t num_kv_heads = 0;
};

// SmolLM2-135M, Llama-3.2-1B, Llama-3.1-8B, a wide head, and one that fills no register evenly.
constexpr std::array<Heads, 5> kHeads = {
    {{64, 9, 3}, {64, 32, 8}, {128, 32, 8}, {256, 16, 8}, {90, 12, 4}}};

struct Attention {
  Heads heads;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  DType dtype = DType::kBF16;
};

struct Operands {
  Tensors q;
  Caches kv;
};

// Query-key pairs under the mask, all query heads together.
double visible_pairs(const Attention& attention) {
  double pairs = 0;
  for (std::int64_t row = 0; row < attention.queries; ++row) {
    pairs += static_cast<double>(attention.keys - attention.queries + row + 1);
  }
  return pairs * static_cast<double>(attention.heads.num_q_heads);
}

std::unique_ptr<Operation> prepare(Device& device, const Attention& attention) {
  const auto& [head_dim, num_q_heads, num_kv_heads] = attention.heads;
  const Copies copies = attention.queries == 1 ? Copies::kBeyondCache : Copies::kOne;
  Operands operands{
      device.make(attention.dtype, attention.queries, num_q_heads * head_dim),
      device.make_caches(attention.dtype, {num_kv_heads, attention.keys, head_dim}, copies)};
  const Phase phase = attention.queries == 1 ? Phase::kDecode : Phase::kPrefill;
  return operation(std::move(operands),
                   [backend = &device.backend(), phase](const Operands& on, std::int64_t call) {
                     backend->attend(on.q.at(0), on.kv.at(call), {.phase = phase});
                   });
}

void add(std::vector<Case>& cases, const Attention& attention) {
  const auto& [head_dim, num_q_heads, num_kv_heads] = attention.heads;
  Cost cost{.flops = 4.0 * static_cast<double>(head_dim) * visible_pairs(attention)};
  if (attention.queries == 1) {  // bound by reading the cache
    cost.bytes = static_cast<double>(2 * num_kv_heads * attention.keys *
                                     row_bytes(attention.dtype, head_dim));
  }
  const char* name = attention.queries == 1 ? "attend_decode" : "attend";
  cases.push_back({fmt::format("{}/q{}/k{}/d{}h{}kv{}/{}", name, attention.queries, attention.keys,
                               head_dim, num_q_heads, num_kv_heads, name_of(attention.dtype)),
                   cost, [attention](Device& device) { return prepare(device, attention); }});
}

constexpr std::int64_t kGroupLen = 32;  // KIVI's
constexpr std::int64_t kResidualLen = 128;

// One operand of few bits. Scales are small plain numbers, codes whatever ids are.
struct Codes {
  Tensors codes;
  Tensors scales;
  GroupAxis axis = GroupAxis::kChannels;
  std::int64_t bits = 0;

  QuantisedRows at(std::int64_t call) const {
    return {codes.at(call), scales.at(call), scales.at(call), bits, kGroupLen, axis};
  }
};

Codes make_codes(Device& device, GroupAxis axis, std::int64_t bits, std::int64_t rows,
                 std::int64_t dim) {
  const bool by_token = axis == GroupAxis::kTokens;
  return {
      device.make(DType::kI32, rows, QuantisedRows::code_words(dim, bits), Copies::kBeyondCache),
      device.make(DType::kBF16, by_token ? rows / kGroupLen : rows,
                  by_token ? dim : dim / kGroupLen),
      axis, bits};
}

struct QuantisedOperands {
  Tensors q;
  Codes keys;
  Codes values;
  Tensors recent;
};

void add_quantised(std::vector<Case>& cases, const Heads& heads, std::int64_t keys,
                   std::int64_t bits) {
  const std::int64_t coded = heads.num_kv_heads * (keys - kResidualLen);
  Cost cost{.flops = 4.0 * static_cast<double>(heads.head_dim * heads.num_q_heads * keys)};
  cost.bytes = static_cast<double>(2 * coded * heads.head_dim * (bits * kGroupLen + 32)) /
               (8 * static_cast<double>(kGroupLen));
  const auto prepare_it = [heads, keys, bits, coded](Device& device) {
    const std::int64_t dim = heads.head_dim;
    QuantisedOperands operands{device.make(DType::kBF16, 1, heads.num_q_heads * dim),
                               make_codes(device, GroupAxis::kTokens, bits, coded, dim),
                               make_codes(device, GroupAxis::kChannels, bits, coded, dim),
                               device.make(DType::kBF16, heads.num_kv_heads * kResidualLen, dim)};
    return operation(std::move(operands), [backend = &device.backend(), heads, keys](
                                              const QuantisedOperands& on, std::int64_t call) {
      backend->attend_quantised(on.q.at(0), {.keys = on.keys.at(call),
                                             .values = on.values.at(call),
                                             .recent_keys = on.recent.at(0),
                                             .recent_values = on.recent.at(0),
                                             .num_kv_heads = heads.num_kv_heads,
                                             .num_tokens = keys,
                                             .num_quantised_keys = keys - kResidualLen,
                                             .num_quantised_values = keys - kResidualLen});
    });
  };
  cases.push_back({fmt::format("attend_quantised/q1/k{}/d{}h{}kv{}/{}bit", keys, heads.head_dim,
                               heads.num_q_heads, heads.num_kv_heads, bits),
                   cost, prepare_it});
}

struct RowsAndCodes {
  Tensors rows;
  Codes codes;
};

void add_quantise_rows(std::vector<Case>& cases, GroupAxis axis, std::int64_t bits) {
  constexpr std::int64_t kRows = 4096;
  constexpr std::int64_t kDim = 64;
  const Cost cost{.bytes = static_cast<double>(kRows * kDim) * (2 + static_cast<double>(bits) / 8)};
  cases.push_back({fmt::format("quantise_rows/m{}/{}/{}bit/bf16", kRows,
                               axis == GroupAxis::kTokens ? "keys" : "values", bits),
                   cost, [axis, bits](Device& device) {
                     RowsAndCodes operands{device.make(DType::kBF16, kRows, kDim),
                                           make_codes(device, axis, bits, kRows, kDim)};
                     return operation(
                         std::move(operands),
                         [backend = &device.backend()](const RowsAndCodes& on, std::int64_t call) {
                           backend->quantise_rows(on.rows.at(0), on.codes.at(call));
                         });
                   }});
}

void add_mask(std::vector<Case>& cases, DType dtype) {
  constexpr std::int64_t kRows = 512;
  constexpr std::int64_t kKeys = 8192;
  cases.push_back({fmt::format("causal_mask/m{}/{}/{}", kRows, kKeys, name_of(dtype)),
                   {.bytes = static_cast<double>(kRows * row_bytes(dtype, kKeys))},
                   [dtype](Device& device) {
                     return operation(
                         device.make(dtype, kRows, kKeys),
                         [backend = &device.backend()](const Tensors& mask, std::int64_t call) {
                           backend->causal_mask(mask.at(call));
                         });
                   }});
}

}  // namespace

void add_attention_cases(std::vector<Case>& cases) {
  for (const std::int64_t bits : {2, 4}) {
    for (const Heads& heads : {kHeads[0], kHeads[2]}) {
      add_quantised(cases, heads, 1024, bits);
      add_quantised(cases, heads, 8192, bits);
    }
    add_quantise_rows(cases, GroupAxis::kTokens, bits);
    add_quantise_rows(cases, GroupAxis::kChannels, bits);
  }
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    add_mask(cases, dtype);
    for (const Heads& heads : kHeads) {
      add(cases, {heads, 512, 8192, dtype});
      add(cases, {heads, 1, 1024, dtype});
      add(cases, {heads, 1, 8192, dtype});
    }
  }
}

}  // namespace tidekv::micro
