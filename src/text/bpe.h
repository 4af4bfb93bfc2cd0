// Byte-pair encoding: merges the bytes of one piece into tokens, best-ranked pair first.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/merge_table.h"
#include "text/tokenizer_spec.h"
#include "text/vocabulary.h"
#include "tidekv/result.h"

namespace tidekv {

// Buffers that encode() reuses from piece to piece; one per thread.
class BpeScratch {
 private:
  friend class Bpe;
  MergeScratch merges_;
  std::string spelling_;
};

class Bpe {
 public:
  // The vocabulary must outlive the result.
  static Result<Bpe> build(const TokenizerSpec& spec, const Vocabulary& vocabulary,
                           const std::string& file);

  // Appends the ids of `piece`, any bytes, shorter than 2 GiB. Bytes without a token are left out,
  // as Hugging Face does it. O(n log n).
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& ids) const;

  // Bytes of `text` that have a token.
  std::size_t count_bytes(std::string_view text) const;

 private:
  explicit Bpe(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}
  Status read_bytes(const TokenizerSpec& spec, const std::string& file);
  bool whole_token(std::string_view piece, BpeScratch& scratch,
                   std::vector<std::int32_t>& ids) const;

  const Vocabulary* vocabulary_;
  bool ignore_merges_ = false;
  std::array<std::int32_t, 256> byte_ids_{};  // -1: none
  bool has_all_bytes_ = true;
  MergeTable merges_;
};

}  // namespace tidekv
