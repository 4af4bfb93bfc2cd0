// Byte-pair encoding over characters, as SentencePiece and Llama's tokenizer.json have it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/merge_table.h"
#include "text/piece_model.h"
#include "text/sentencepiece_spec.h"
#include "text/vocabulary.h"
#include "tidekv/result.h"

namespace tidekv {

class PieceBpe final : public PieceModel {
 public:
  // The vocabulary must outlive the result.
  static Result<PieceBpe> build(const SentencePieceSpec& spec, const Vocabulary& vocabulary,
                                const std::string& file);

  void cut(std::string_view text, PieceScratch& scratch) const override;

 private:
  explicit PieceBpe(const Vocabulary& vocabulary) : vocabulary_(&vocabulary) {}
  void merge_word(std::string_view word, std::size_t begin, PieceScratch& scratch) const;
  void index_characters(const SentencePieceSpec& spec);
  std::vector<Merge> merges_of_scores(const SentencePieceSpec& spec) const;
  std::int32_t symbol_of_character(std::string_view character) const;
  std::int32_t symbol_of(std::string_view text, const SentencePieceSpec& spec) const;

  const Vocabulary* vocabulary_;
  bool ignore_merges_ = false;
  bool cuts_at_spaces_ = false;  // no token goes on across the beginning of a word
  // Characters by their bytes as a number. A character that is no token but part of one has a
  // symbol of its own behind all ids.
  std::vector<std::pair<std::uint32_t, std::int32_t>> characters_;
  std::array<std::int32_t, 128> ascii_{};
  std::int64_t num_symbols_ = 0;
  MergeTable merges_;
};

}  // namespace tidekv
