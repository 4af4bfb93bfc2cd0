#include "chat/chat_template.h"

#include <array>
#include <utility>

#include "base/json_value.h"
#include "chat/template_interpreter.h"
#include "chat/template_parser.h"
#include "chat/template_runtime.h"

namespace tidekv {
namespace {

Status check_roles(std::span<const ChatMessage> messages) {
  for (const ChatMessage& message : messages) {
    if (message.role != "system" && message.role != "user" && message.role != "assistant") {
      return Error{ErrorCode::kInvalidArgument, "chat message: role is " + in_quotes(message.role) +
                                                    "; expected system, user or assistant"};
    }
  }
  return Ok{};
}

Value plain(std::string_view bytes) { return Value{MarkedText{.bytes = bytes}}; }

// [{"role": ..., "content": ...}, ...]. `marks` holds one range for each content.
Result<Value> message_list(TemplateRuntime& runtime, std::span<const ChatMessage> messages,
                           std::vector<TextRange>& marks) {
  marks.resize(messages.size());
  std::vector<Value> items;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    MarkedText content{.bytes = messages[i].content};
    if (!content.bytes.empty()) {
      marks[i].end = content.bytes.size();
      content.marks = std::span(&marks[i], 1);
    }
    TIDEKV_ASSIGN(Value message, runtime.dict({{plain("role"), plain(messages[i].role)},
                                               {plain("content"), Value{content}}}));
    items.push_back(message);
  }
  return runtime.list(std::move(items), ValueList::Kind::kList);
}

// Everything that a template can see.
Scope global_variables(const Value& messages, const ChatOptions& options) {
  Scope globals;
  globals.variables = {
      {"messages", messages},
      {"add_generation_prompt", Value{options.add_generation_prompt}},
      {"tools", Value{NoneValue{}}},
      {"documents", Value{NoneValue{}}},
      {"range", Value{GlobalFunction::kRange}},
      {"dict", Value{GlobalFunction::kDict}},
      {"namespace", Value{GlobalFunction::kNamespace}},
      {"raise_exception", Value{GlobalFunction::kRaiseException}},
  };
  if (options.local_time) {
    globals.variables.emplace_back("strftime_now", Value{GlobalFunction::kStrftimeNow});
  }
  const std::array<std::pair<std::string_view, const std::string*>, 4> tokens = {
      {{"bos_token", &options.bos_token},
       {"eos_token", &options.eos_token},
       {"unk_token", &options.unk_token},
       {"pad_token", &options.pad_token}}};
  for (const auto& [name, token] : tokens) {
    if (!token->empty()) {
      globals.variables.emplace_back(name, plain(*token));
    }
  }
  return globals;
}

}  // namespace

ChatTemplate::ChatTemplate(std::unique_ptr<const TemplateTree> tree) : tree_(std::move(tree)) {}
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;
ChatTemplate::~ChatTemplate() = default;

Result<ChatTemplate> ChatTemplate::parse(std::string_view source, const std::string& where) {
  TIDEKV_ASSIGN(TemplateTree tree, parse_template(source, where));
  return ChatTemplate(std::make_unique<const TemplateTree>(std::move(tree)));
}

Result<RenderedChat> ChatTemplate::render(std::span<const ChatMessage> messages,
                                          const ChatOptions& options) const {
  TIDEKV_TRY(check_roles(messages));
  std::size_t content_bytes = 0;
  for (const ChatMessage& message : messages) {
    content_bytes += message.content.size();
  }
  TemplateRuntime runtime(tree_->where, options, content_bytes);
  std::vector<TextRange> marks;
  TIDEKV_ASSIGN(const Value list, message_list(runtime, messages, marks));
  Scope globals = global_variables(list, options);
  TextBuilder out;
  TIDEKV_TRY(TemplateInterpreter(*tree_, runtime).run(globals, out));
  RenderedChat chat;
  out.take(chat.text, chat.user_ranges);
  return chat;
}

}  // namespace tidekv
