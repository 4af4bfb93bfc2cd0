// The sections of a tokenizer.json of SentencePiece's kind (Llama 2, Mistral) that say where spaces
// go.
#pragma once

#include "base/field_reader.h"
#include "text/tokenizer_spec.h"
#include "tidekv/result.h"

namespace tidekv {

// `root`: the file's object.
Status read_space_mark_sections(const FieldReader& root, TokenizerSpec& spec);

}  // namespace tidekv
