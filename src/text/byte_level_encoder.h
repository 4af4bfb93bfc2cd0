// Byte-level BPE: pre-tokeniser, then merges inside each piece.
#pragma once

#include <memory>
#include <string>

#include "text/text_encoder.h"
#include "text/tokenizer_spec.h"
#include "text/vocabulary.h"
#include "tidekv/result.h"

namespace tidekv {

// The vocabulary must outlive the result.
Result<std::unique_ptr<const TextEncoder>> make_byte_level_encoder(const TokenizerSpec& spec,
                                                                   const Vocabulary& vocabulary,
                                                                   const std::string& file);

}  // namespace tidekv
