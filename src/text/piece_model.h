// Cuts normalised text into pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/merge_table.h"

namespace tidekv {

// A stretch of the text and the token that it is; negative: none.
struct CutPiece {
  std::size_t end = 0;  // where it ends; it begins where the one before it ended
  std::int32_t id = -1;
};

// Buffers that are reused from text to text; one per thread.
struct PieceScratch {
  std::vector<CutPiece> pieces;  // what cut() gives, in order
  MergeScratch merges;
  std::vector<std::uint32_t> begins;  // of the merge's symbols
  struct Best {
    float score = 0;
    std::int32_t id = -1;
    std::uint32_t begin = 0;
    bool reached = false;
  };
  std::vector<Best> best;  // by where a piece ends
};

class PieceModel {
 public:
  PieceModel() = default;
  PieceModel(PieceModel&&) = default;
  PieceModel& operator=(PieceModel&&) = default;
  PieceModel(const PieceModel&) = delete;
  PieceModel& operator=(const PieceModel&) = delete;
  virtual ~PieceModel() = default;

  // Replaces scratch.pieces by those of `text`, shorter than 4 GiB.
  virtual void cut(std::string_view text, PieceScratch& scratch) const = 0;
};

}  // namespace tidekv
