// Reads a SentencePiece model file (tokenizer.model): one protocol buffers message.
#pragma once

#include <string>
#include <string_view>

#include "text/sentencepiece_spec.h"
#include "tidekv/result.h"

namespace tidekv {

// Whether `bytes` begin as such a file does: with its first piece.
bool is_sentencepiece_model(std::string_view bytes);

// `file` names the file in errors. Control pieces and the unknown one become special tokens.
Result<SentencePieceSpec> read_sentencepiece_model(std::string_view bytes, const std::string& file);

}  // namespace tidekv
