// A prompt of random keys, values and queries, carried through the compressor layer by layer.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "cache/cache_manager.h"
#include "compress/selector.h"
#include "conformance/device.h"

namespace tidekv::conformance {

struct PromptSize {
  std::int64_t prompt_len = 300;
  std::int64_t num_layers = 2;
  std::int64_t num_kv_heads = 2;
  std::int64_t group = 2;
  std::int64_t head_dim = 32;
};

// Keys, values and queries of every layer.
struct Prompt {
  CacheShape shape;
  std::int64_t group = 1;
  std::vector<AttentionCase> layers;  // every KV head holds the prompt; q is [S, q_heads * D]
};

Prompt random_prompt(Random& random, const PromptSize& size, Inputs inputs);

// What one layer kept.
struct Kept {
  std::vector<std::vector<std::int32_t>> positions;  // one vector per KV head
  HostTensor keys;                                   // the heads' rows one after another
  HostTensor values;
  std::vector<std::vector<float>> scores;  // per KV head, by position; empty if nothing was scored
};

// Compresses every layer of the prompt, scoring `key_block_len` keys at once. With `lse_margin` the
// log-sum-exps of the window and of so many rows before it, or as many as there are, were left by
// attention; else pass 1 finds them.
std::vector<Kept> compress_prompt(Device& device, const Prompt& prompt, const Selector& selector,
                                  std::int64_t key_block_len,
                                  std::optional<std::int64_t> lse_margin = std::nullopt);

// The same caches cut as chunks of the prompt pass. `visit` sees, after every chunk and for every
// layer, where the chunk ends and what the layer kept so far.
struct ChunkKept {
  std::int64_t layer = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  Kept kept;
};
void compress_by_chunk(Device& device, const Prompt& prompt, const Selector& selector,
                       std::int64_t chunk_len, std::int64_t key_block_len,
                       const std::function<void(const ChunkKept&)>& visit);

}  // namespace tidekv::conformance
