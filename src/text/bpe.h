// Byte-pair encoding: merges the bytes of one piece into tokens, best-ranked pair first.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer_spec.h"
#include "text/vocabulary.h"
#include "tidekv/result.h"

namespace tidekv {

// Buffers that encode() reuses from piece to piece; one per thread.
class BpeScratch {
 private:
  friend class Bpe;
  struct Symbol {
    std::int32_t id = -1;  // -1: merged into the symbol before it
    std::int32_t previous = -1;
    std::int32_t next = -1;
  };
  std::vector<Symbol> symbols_;
  std::vector<std::uint64_t> candidates_;  // heap of rank << 32 | position, smallest first
  std::string spelling_;
};

class Bpe {
 public:
  // The vocabulary must outlive the result.
  static Result<Bpe> build(const TokenizerSpec& spec, const Vocabulary& vocabulary,
                           const std::string& file);

  // Appends the ids of `piece`, any bytes, shorter than 2 GiB. O(n log n).
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& ids) const;

 private:
  struct Merge {
    std::int32_t left = -1;
    std::int32_t right = -1;
    std::int32_t result = -1;
  };
  // One merge that starts with a given left token; those of one left token are sorted by `right`.
  struct Pair {
    std::int32_t right = -1;
    std::uint32_t rank = 0;
  };

  explicit Bpe(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}
  Status read_bytes(const std::string& file);
  Status read_merges(const TextList& merges, const std::string& file);
  Status index_pairs(const std::string& file);
  bool whole_token(std::string_view piece, BpeScratch& scratch,
                   std::vector<std::int32_t>& ids) const;
  void offer(BpeScratch& scratch, std::int32_t position, bool heap) const;
  void merge_all(BpeScratch& scratch) const;

  const Vocabulary* vocabulary_;
  bool ignore_merges_ = false;
  std::array<std::int32_t, 256> byte_ids_{};
  std::vector<Merge> merges_;              // by rank
  std::vector<std::uint32_t> pair_begin_;  // [vocab_size + 1]: the pairs of each left token
  std::vector<Pair> pairs_;
};

}  // namespace tidekv
