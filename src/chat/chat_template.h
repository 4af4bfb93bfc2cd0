// A model's own chat template: from messages to the text that the model was trained to see.
//
// The template comes with the model, so from strangers. It is Jinja, run by a small interpreter of
// our own that knows the part of the language that chat templates use, gives it nothing but the
// messages, and bounds its work, memory and nesting. Everything else is an error with the line and
// the name of what is not supported: a template is run as it was meant or not at all.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_options.h"
#include "text/text_range.h"
#include "tidekv/chat.h"
#include "tidekv/result.h"

namespace tidekv {

struct TemplateTree;

struct RenderedChat {
  std::string text;
  // What the messages' contents contributed, ascending and not overlapping. Special tokens that
  // are spelled there are text; all else is the template's own.
  std::vector<TextRange> user_ranges;
};

// Immutable; safe to share between threads.
class ChatTemplate {
 public:
  // `where` names the template in errors.
  static Result<ChatTemplate> parse(std::string_view source, const std::string& where);

  ChatTemplate(ChatTemplate&&) noexcept;
  ChatTemplate& operator=(ChatTemplate&&) noexcept;
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;
  ~ChatTemplate();

  // What Transformers' apply_chat_template(tokenize=False) gives. An error is the template's own
  // refusal of these messages (kInvalidArgument), or a fault of the template.
  Result<RenderedChat> render(std::span<const ChatMessage> messages,
                              const ChatOptions& options = {}) const;

 private:
  explicit ChatTemplate(std::unique_ptr<const TemplateTree> tree);

  std::unique_ptr<const TemplateTree> tree_;
};

}  // namespace tidekv
