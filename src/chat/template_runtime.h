// One rendering of a chat template: what it made, how much work and memory it may still take, and
// where it stands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/chat_options.h"
#include "chat/template_value.h"
#include "tidekv/result.h"

namespace tidekv {

class TemplateRuntime {
 public:
  // `content_bytes` of all messages together: the limits grow with it.
  TemplateRuntime(const std::string& where, const ChatOptions& options, std::size_t content_bytes);

  // Every operation passes here, with the bytes or elements it looks at: an error when the work or
  // the memory of this rendering is spent.
  Status step(std::size_t size = 0);

  // "where: line N: what".
  Error error(const std::string& what, ErrorCode code = ErrorCode::kBadFile) const;
  void set_line(std::int32_t line) { line_ = line; }
  std::int32_t line() const { return line_; }

  // Errors if the text, or the list, would become too large.
  Status append(TextBuilder& builder, const MarkedText& text, std::size_t begin, std::size_t end);
  Status append(TextBuilder& builder, const MarkedText& text) {
    return append(builder, text, 0, text.bytes.size());
  }
  Status check_text_size(std::size_t bytes) const;
  Status check_list_size(std::size_t items) const;

  MarkedText text(TextBuilder& builder);
  MarkedText text(std::string bytes);  // of no message
  MarkedText slice(const MarkedText& text, std::size_t begin, std::size_t end);
  // An error if it would be nested too deep.
  Result<Value> list(std::vector<Value> items, ValueList::Kind kind);
  Result<Value> dict(std::vector<std::pair<Value, Value>> entries);
  Namespace* make_namespace();
  LoopState* make_loop();
  Scope* make_scope(Scope* parent);
  // Its block has ended: it may become another one, unless a macro still sees it.
  void release_scope(Scope& scope);
  const Macro* make_macro(Macro macro);
  // Counts what a scope or a namespace grew by.
  void count_variable() { memory_used_ += sizeof(std::pair<std::string_view, Value>); }

  const std::optional<std::tm>& local_time() const { return local_time_; }

 private:
  std::string where_;
  std::optional<std::tm> local_time_;
  std::int32_t line_ = 0;
  std::size_t work_left_;
  std::size_t memory_limit_;
  std::size_t memory_used_ = 0;

  // Deques: growing them moves nothing.
  std::deque<std::string> texts_;
  std::deque<std::vector<TextRange>> marks_;
  std::deque<ValueList> lists_;
  std::deque<ValueDict> dicts_;
  std::deque<Namespace> namespaces_;
  std::deque<LoopState> loops_;
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_scopes_;
  std::deque<Macro> macros_;
};

}  // namespace tidekv
