// The chat template that comes with a model, and what it may print.
#pragma once

#include <string>

#include "chat/chat_options.h"
#include "chat/chat_template.h"
#include "engine/model_source.h"
#include "tidekv/result.h"

namespace tidekv {

struct ChatSource {
  ChatTemplate chat_template;
  ChatOptions options;  // the model's special tokens
};

// `path`: what `source` was opened from. An error if the model has no template, or one that needs
// what TideKV does not know: a conversation is never put into a form that was guessed.
Result<ChatSource> read_chat_source(const std::string& path, const ModelSource& source);

}  // namespace tidekv
