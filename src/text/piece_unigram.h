// SentencePiece's unigram model: the pieces whose scores add up to most.
#pragma once

#include <string_view>
#include <vector>

#include "text/piece_model.h"
#include "text/piece_trie.h"
#include "text/sentencepiece_spec.h"

namespace tidekv {

class PieceUnigram final : public PieceModel {
 public:
  explicit PieceUnigram(const SentencePieceSpec& spec);

  void cut(std::string_view text, PieceScratch& scratch) const override;

 private:
  PieceTrie trie_;
  std::vector<float> scores_;  // by id
  std::vector<bool> user_defined_;
  float lowest_ = 0;  // scores of normal pieces
  float highest_ = 0;
};

}  // namespace tidekv
