// SentencePiece: normaliser, then pieces, then bytes for what no piece has.
#pragma once

#include <memory>
#include <string>

#include "text/sentencepiece_spec.h"
#include "text/text_encoder.h"
#include "text/vocabulary.h"
#include "tidekv/result.h"

namespace tidekv {

// The vocabulary must outlive the result.
Result<std::unique_ptr<const TextEncoder>> make_sentencepiece_encoder(const SentencePieceSpec& spec,
                                                                      const Vocabulary& vocabulary,
                                                                      const std::string& file);

}  // namespace tidekv
