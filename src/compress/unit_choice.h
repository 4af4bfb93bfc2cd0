// Chooses candidates in units of neighbouring tokens (ChunkKV), and still fills the budget exactly.
//
// A unit's score is the mean of its candidates'. Units are taken whole, best first (of equals the
// lower one), until one does not fit; of that one the best candidates fill what is left.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compress/block_scorer.h"

namespace tidekv {

// From the device to the host, complete when this returns. An error if the request was cancelled:
// the numbers would mean nothing.
Status download(Backend& backend, DeviceView from, std::span<std::byte> to);

class UnitChoice {
 public:
  // lens [num_kv_heads]: how many candidates stay of each head; all the same.
  static Result<UnitChoice> open(Backend& backend, std::int64_t unit_len, const BlockScorer& scorer,
                                 std::span<const std::int64_t> lens);

  // The scores of the next block; blocks are whole units, but for the last.
  void offer(const KeyRange& range, DeviceView scores);

  // Writes the slots that stay to ids [1, sum of lens] i32, head by head.
  Status take(BlockScorer& scorer, DeviceView ids);

 private:
  // Slots of a unit.
  KeyRange range_of(std::int64_t unit) const;
  // The units of one head, best first.
  std::vector<std::int32_t> ranked(std::size_t head, std::span<const float> scores,
                                   std::span<const std::int32_t> ids) const;
  // Slots of `unit`, best first. Scores the unit again, the same bits as before.
  Result<std::vector<std::int32_t>> best_of(BlockScorer& scorer, std::int64_t unit,
                                            std::size_t head) const;

  Backend* backend_ = nullptr;
  std::int64_t unit_len_ = 1;
  KeyRange candidates_;
  std::int64_t num_kept_ = 0;            // candidates of a head that stay
  std::vector<std::int64_t> unit_lens_;  // [num_kv_heads]: units that may be looked at
  Buffer averages_;                      // [num_kv_heads, units of a block]
  Buffer best_scores_;
  Buffer best_units_;
  TopKState state_;
};

}  // namespace tidekv
