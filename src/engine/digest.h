// 64-bit digests of a prefill: anyone can check on their own model and machine that the schedule
// does not change the numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "prefill/schedule.h"
#include "tidekv/memory_report.h"

namespace tidekv {

// Order-sensitive digest of a byte stream; not cryptographic.
class Digest64 {
 public:
  void add(std::span<const std::byte> bytes);
  std::uint64_t value() const;

 private:
  void mix(std::uint64_t word);
  std::uint64_t state_ = 0x9E3779B97F4A7C15U;
  std::uint64_t length_ = 0;
  std::uint64_t partial_ = 0;  // bytes of an unfinished word
};

// Digests hidden rows, retained positions and cache rows layer by layer, in canonical order
// (head, position), without padding.
class DigestProbe final : public PrefillProbe {
 public:
  DigestProbe(Backend& backend, const ModelConfig& config);

  void on_scores(std::int64_t layer, KeyRange range, DeviceView scores) override;
  void on_hidden(std::int64_t layer, DeviceView rows) override;
  void on_commit(std::int64_t layer, const CompactLayer& compact) override;

  // Of the rows seen so far.
  std::vector<LayerDigest> layers() const;

 private:
  template <typename View>  // on the device or in the offload pool
  void add_rows(Digest64& digest, View rows);
  LayerDigest& digest_of(std::int64_t layer) { return layers_[static_cast<std::size_t>(layer)]; }

  Backend* backend_;
  std::vector<LayerDigest> layers_;
  std::vector<Digest64> hidden_;  // rows may come chunk by chunk
  std::vector<std::byte> staging_;
};

}  // namespace tidekv
