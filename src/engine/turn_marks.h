// The marks of a chat form that are plain text.
#pragma once

#include "chat/chat_template.h"
#include "text/tokenizer.h"
#include "tidekv/result.h"

namespace tidekv {

// Where a special token marks a turn, a message that spells it stays text and forges nothing. Some
// models mark turns with plain text instead, Mistral's "[/INST]" say, and there the model cannot
// tell the template's from a user's. So a message that holds such a mark is an error
// (kInvalidArgument) that names it. The marks are the lines that the template writes between
// messages in stretches without a special token, and the tokens it writes that are found in any
// text though they are not special.
Status check_turn_marks(const RenderedChat& chat, const Tokenizer& tokenizer);

}  // namespace tidekv
