// What a byte is for: the terms of Eq. (1), and the terms beside it that a run also holds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tidekv {

enum class Component : std::uint8_t {
  kWeights,          // the model file, mapped
  kHiddenBridge,     // Hidden: prompt-wide hidden chunks between two layers
  kFullKv,           // KVres: uncompressed KV of the active layer
  kCompactCache,     // KVres: retained KV of finished layers
  kPackedCodes,      // of it, what is stored in few bits
  kPackedScales,     // scales and minima of those
  kOffloadRing,      // what of a cache in the offload pool is on the device at a time
  kCachePositions,   // original positions of the retained rows
  kDecodeGrowth,     // room for the KV of generated tokens, beside the budget
  kActivations,      // Act: attention and MLP workspace of one chunk
  kAttentionScores,  // Act too: mask and scores, where attention holds them
  kCompressionTemp,  // Temp: scoring, selection and packing
  kKernelPanels,     // M_backend of Eq. (2): per-thread panels inside kernels
  kLogits,           // the output row over the vocabulary
};

inline constexpr std::size_t kNumComponents = 14;

constexpr std::string_view name_of(Component component) {
  constexpr std::array<std::string_view, kNumComponents> kNames = {
      "weights",          "hidden_bridge",    "full_kv",         "compact_cache", "packed_codes",
      "packed_scales",    "offload_ring",     "cache_positions", "decode_growth", "activations",
      "attention_scores", "compression_temp", "kernel_panels",   "logits"};
  return kNames[static_cast<std::size_t>(component)];
}

// Bytes by component.
class ComponentBytes {
 public:
  std::int64_t& operator[](Component component) {
    return bytes_[static_cast<std::size_t>(component)];
  }
  std::int64_t operator[](Component component) const {
    return bytes_[static_cast<std::size_t>(component)];
  }
  std::int64_t total() const {
    std::int64_t sum = 0;
    for (const std::int64_t bytes : bytes_) {
      sum += bytes;
    }
    return sum;
  }
  friend bool operator==(const ComponentBytes&, const ComponentBytes&) = default;

 private:
  std::array<std::int64_t, kNumComponents> bytes_{};
};

// A part of an allocation and what it is for.
struct Charge {
  Component component = Component::kWeights;
  std::int64_t bytes = 0;
};

}  // namespace tidekv
