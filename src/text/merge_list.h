// Where a vocabulary's merges come from: a list in the file, or the ranks of the tokens themselves.
#pragma once

#include <string>
#include <vector>

#include "text/merge_table.h"
#include "text/tokenizer_spec.h"
#include "text/vocabulary.h"
#include "tidekv/result.h"

namespace tidekv {

// The merges that `spec` lists, each with its place in the list as order. Both parts and the
// merged token must be tokens of the model.
Result<std::vector<Merge>> listed_merges(const TokenizerSpec& spec, const Vocabulary& vocabulary,
                                         const std::string& file);

// For a vocabulary whose ids are ranks: every way to cut a token into two tokens, ordered by the
// rank of the whole, then of the left and of the right half, as Transformers converts such files.
std::vector<Merge> merges_of_ranks(const TokenizerSpec& spec, const Vocabulary& vocabulary);

}  // namespace tidekv
