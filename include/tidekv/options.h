// What a caller may ask for. Plain structs: every field has a default and a unit.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tidekv {

struct EngineOptions {
  int num_threads = 0;         // 0: every CPU this process may run on
  bool check_tensors = false;  // look for NaN and infinity in all weights; reads the whole file
};

// Type of activations and of the KV cache. Weights stay in their file's type.
enum class ComputeType : std::uint8_t { kAuto, kBF16, kF32 };  // kAuto: F32 for F32 weights

enum class GroupReduction : std::uint8_t { kMean, kMax };  // over the query heads of a KV head
enum class Pooling : std::uint8_t { kMax, kAverage };      // over neighbouring keys

// Whose way of splitting a budget: kvpress's over layers (pyramidkv) and KV heads (adakv),
// KVCache-Factory's over layers. They are here for comparison: what they keep does not always add
// up to the budget, and the report says what was kept.
enum class BudgetSplit : std::uint8_t { kExact, kKvpress, kKvcf };

// What attention of the prompt holds beside its output: nothing; the chunk's mask; the mask and all
// scores. It changes memory and speed, never numbers.
enum class AttentionImplementation : std::uint8_t { kFlash, kMasked, kEager };

// How the prompt becomes a cache. Everything here that changes bytes changes the plan alike.
struct PrefillOptions {
  std::string method = "tidekv-snap";  // method_names() lists them
  std::int64_t budget = 4096;          // tokens retained per layer and KV head, all included
  std::int64_t window_len = 32;        // observation queries, always retained; inside the budget
  std::int64_t kernel_len = 7;         // odd; keys pooled together
  Pooling pooling = Pooling::kMax;
  GroupReduction group_reduction = GroupReduction::kMean;
  static constexpr std::int64_t kMethodsSinks = -1;
  // First tokens, always retained; inside the budget. kMethodsSinks: as many as the method has by
  // itself, which is none but for those that keep recent tokens only.
  std::int64_t num_sinks = kMethodsSinks;
  std::int64_t unit_len = 10;   // chunkkv: neighbouring tokens retained or dropped together
  double even_share = 0.2;      // adakv: share of a layer's budget all KV heads get alike
  std::int64_t steepness = 20;  // pyramidkv: the last layer gets about 1 / steepness of K
  BudgetSplit budget_split = BudgetSplit::kExact;
  // kivi-2, kivi-4: tokens of a key's channel, and channels of a value, that share a scale; divides
  // the head dimension. 0: 32, or the largest power of two below that divides it.
  std::int64_t kv_group_len = 0;
  std::int64_t kv_residual_len = 128;  // kivi-2, kivi-4: newest tokens not quantised; whole groups
  std::int64_t chunk_len = 0;          // prompt tokens run at once; 0: largest up to 2048 that fits
  std::int64_t key_block_len = 1024;   // keys scored at once; changes memory, never numbers
  // Rows inside the MLP at once; 0: 256, and where the whole prompt runs at once, all. Changes
  // memory, never numbers.
  std::int64_t mlp_tile_len = 0;
  bool all_rows = false;  // run every row through the last layer (Alg. 1 returns H)
  AttentionImplementation attention = AttentionImplementation::kFlash;
  ComputeType compute_type = ComputeType::kAuto;
  std::int64_t memory_limit_bytes = 0;  // weights included; 0: no limit
  std::int64_t pool_limit_bytes =
      0;                         // headinfer: of the offload pool, beside the former; 0: no limit
  std::int64_t context_len = 0;  // cap on prompt + generated; 0: the model's own
  bool beyond_context = false;   // context_len may exceed the model's own, untrained there
  std::int64_t max_new_tokens = 128;  // -1: as many as the context leaves
};

// Order of the filters, as in llama.cpp: repeat penalty, top-k, top-p, min-p, temperature.
struct SamplingOptions {
  float temperature = 0.8F;     // 0: greedy
  int top_k = 40;               // 0: off
  float top_p = 0.95F;          // 1: off
  float min_p = 0.05F;          // 0: off
  float repeat_penalty = 1.0F;  // 1: off; > 1 discourages; sees evicted prompt tokens too
  int repeat_last_n = 64;       // tokens the penalty looks back; -1: all
  std::int64_t seed = -1;       // -1: from the system's entropy
};

struct Request {
  std::vector<std::int32_t> prompt;  // token ids, BOS included where the model wants one
  PrefillOptions prefill;
  SamplingOptions sampling;
  bool ignore_eos = false;  // go on to max_new_tokens
  bool digests = false;     // 64-bit digests of hidden states, positions and cache, per layer
  bool timeline = false;    // keep every change of the ledger
};

}  // namespace tidekv
