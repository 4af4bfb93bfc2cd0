// What a SentencePiece model says, as plain data, whichever file it came from.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer_spec.h"

namespace tidekv {

// The numbers are those of SentencePiece's files and of GGUF's token types.
enum class PieceType : std::uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,  // found in the text itself
  kUnused = 5,       // never comes out of text
  kByte = 6,
};

struct SentencePieceSpec {
  enum class Model : std::uint8_t { kBpe, kUnigram };

  // Tokens, added tokens and BOS. For BPE without scores, also the merges. User-defined pieces
  // are here among the tokens if only the normalised text is searched for them, else among the
  // added tokens.
  TokenizerSpec base;
  Model model = Model::kBpe;
  std::vector<float> scores;     // of base.tokens; empty: base.merges tells the order
  std::vector<PieceType> types;  // of base.tokens
  std::int32_t unknown_id = -1;  // what a character without token becomes; -1: there is no such
  bool byte_fallback = false;    // such a character becomes its bytes' tokens
  bool remove_extra_whitespace = false;  // at both ends, and all but one of a run
  std::string charsmap;                  // SentencePiece's compiled character map; may be empty
  std::string charsmap_field = "precompiled_charsmap";  // names it in errors
};

}  // namespace tidekv
