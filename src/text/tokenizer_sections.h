// The small sections of tokenizer.json: what they say, or that it is not supported.
#pragma once

#include "base/field_reader.h"
#include "text/tokenizer_spec.h"
#include "tidekv/result.h"

namespace tidekv {

// `root`: the file's object without model.vocab, model.merges and added_tokens, and without fields
// that no tokenizer.json has.
Status read_sections(const FieldReader& root, TokenizerSpec& spec);

// One entry of added_tokens.
Result<AddedToken> read_added_token(const FieldReader& fields);

}  // namespace tidekv
