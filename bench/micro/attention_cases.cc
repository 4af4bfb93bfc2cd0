// Causal attention of a chunk at the end of a long prompt, and of one generated token.
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
                     backend->attend(on.q.at(0), on.kv.at(call), phase);
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

}  // namespace

void add_attention_cases(std::vector<Case>& cases) {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    for (const Heads& heads : kHeads) {
      add(cases, {heads, 512, 8192, dtype});
      add(cases, {heads, 1, 1024, dtype});
      add(cases, {heads, 1, 8192, dtype});
    }
  }
}

}  // namespace tidekv::micro
