#include "chat/template_runtime.h"

#include <algorithm>
#include <utility>

namespace tidekv {
namespace {

constexpr std::size_t kBaseWork = 2'000'000;
constexpr std::size_t kWorkPerByte = 16;   // of the messages
constexpr std::size_t kBytesPerStep = 32;  // looking at a byte is cheaper than a step
constexpr std::size_t kBaseMemory = 8U << 20U;
constexpr std::size_t kMemoryPerByte = 32;
constexpr int kMaxValueDepth = 64;  // comparing and writing values recurse

}  // namespace

TemplateRuntime::TemplateRuntime(const std::string& where, const ChatOptions& options,
                                 std::size_t content_bytes)
    : where_(where),
      local_time_(options.local_time),
      work_left_(kBaseWork + kWorkPerByte * content_bytes),
      memory_limit_(kBaseMemory + kMemoryPerByte * content_bytes) {}

Status TemplateRuntime::step(std::size_t size) {
  const std::size_t cost = 1 + size / kBytesPerStep;
  if (cost > work_left_) {
    work_left_ = 0;
    return error("stopped: the template does far more work than a chat needs");
  }
  work_left_ -= cost;
  if (memory_used_ > memory_limit_) {
    return error("stopped: the template's values take more than " +
                 std::to_string(memory_limit_ >> 20U) + " MiB");
  }
  return Ok{};
}

Error TemplateRuntime::error(const std::string& what, ErrorCode code) const {
  return Error{code, where_ + ": line " + std::to_string(line_) + ": " + what};
}

Status TemplateRuntime::check_text_size(std::size_t bytes) const {
  if (bytes > memory_limit_ - std::min(memory_limit_, memory_used_)) {
    return error("stopped: the template makes a text of more than " +
                 std::to_string(memory_limit_ >> 20U) + " MiB with what it already holds");
  }
  return Ok{};
}

Status TemplateRuntime::check_list_size(std::size_t items) const {
  if (items > memory_limit_ / sizeof(Value)) {
    return error("stopped: the template makes a list of " + std::to_string(items) + " items");
  }
  return check_text_size(items * sizeof(Value));
}

Status TemplateRuntime::append(TextBuilder& builder, const MarkedText& text, std::size_t begin,
                               std::size_t end) {
  TIDEKV_TRY(check_text_size(builder.size() + (end - begin)));
  TIDEKV_TRY(step(end - begin));
  builder.append(text, begin, end);
  return Ok{};
}

MarkedText TemplateRuntime::text(TextBuilder& builder) {
  std::string& bytes = texts_.emplace_back();
  std::vector<TextRange> ranges;
  builder.take(bytes, ranges);
  memory_used_ += sizeof(std::string) + bytes.capacity();
  MarkedText made{.bytes = bytes};
  if (!ranges.empty()) {
    memory_used_ += sizeof(std::vector<TextRange>) + ranges.capacity() * sizeof(TextRange);
    made.marks = marks_.emplace_back(std::move(ranges));
  }
  return made;
}

MarkedText TemplateRuntime::text(std::string bytes) {
  memory_used_ += sizeof(std::string) + bytes.capacity();
  return {.bytes = texts_.emplace_back(std::move(bytes))};
}

MarkedText TemplateRuntime::slice(const MarkedText& text, std::size_t begin, std::size_t end) {
  MarkedText part{.bytes = text.bytes.substr(begin, end - begin), .markup = text.markup};
  auto range = std::upper_bound(text.marks.begin(), text.marks.end(), begin,
                                [](std::size_t at, const TextRange& r) { return at < r.end; });
  std::vector<TextRange> ranges;
  for (; range != text.marks.end() && range->begin < end; ++range) {
    ranges.push_back({std::max(range->begin, begin) - begin, std::min(range->end, end) - begin});
  }
  if (!ranges.empty()) {
    memory_used_ += sizeof(std::vector<TextRange>) + ranges.capacity() * sizeof(TextRange);
    part.marks = marks_.emplace_back(std::move(ranges));
  }
  return part;
}

Result<Value> TemplateRuntime::list(std::vector<Value> items, ValueList::Kind kind) {
  int depth = 0;
  for (const Value& item : items) {
    depth = std::max(depth, depth_of(item));
  }
  if (depth >= kMaxValueDepth) {
    return error("stopped: the template nests lists deeper than " + std::to_string(kMaxValueDepth));
  }
  memory_used_ += sizeof(ValueList) + items.capacity() * sizeof(Value);
  TIDEKV_TRY(step(items.size()));
  ValueList& made = lists_.emplace_back();
  made.kind = kind;
  made.depth = depth + 1;
  made.items = std::move(items);
  return Value{&made};
}

Result<Value> TemplateRuntime::dict(std::vector<std::pair<Value, Value>> entries) {
  int depth = 0;
  for (const auto& [key, value] : entries) {
    depth = std::max({depth, depth_of(key), depth_of(value)});
  }
  if (depth >= kMaxValueDepth) {
    return error("stopped: the template nests dicts deeper than " + std::to_string(kMaxValueDepth));
  }
  memory_used_ += sizeof(ValueDict) + entries.capacity() * 2 * sizeof(Value);
  ValueDict& made = dicts_.emplace_back();
  made.depth = depth + 1;
  made.entries = std::move(entries);
  return Value{static_cast<const ValueDict*>(&made)};
}

Namespace* TemplateRuntime::make_namespace() {
  memory_used_ += sizeof(Namespace);
  return &namespaces_.emplace_back();
}

LoopState* TemplateRuntime::make_loop() {
  memory_used_ += sizeof(LoopState);
  return &loops_.emplace_back();
}

Scope* TemplateRuntime::make_scope(Scope* parent) {
  Scope* made = nullptr;
  if (free_scopes_.empty()) {
    memory_used_ += sizeof(Scope) + sizeof(void*);
    made = &scopes_.emplace_back();
  } else {
    made = free_scopes_.back();
    free_scopes_.pop_back();
  }
  made->parent = parent;
  return made;
}

void TemplateRuntime::release_scope(Scope& scope) {
  if (!scope.has_macro) {
    scope.variables.clear();
    free_scopes_.push_back(&scope);
  }
}

const Macro* TemplateRuntime::make_macro(Macro macro) {
  memory_used_ += sizeof(Macro);
  return &macros_.emplace_back(macro);
}

}  // namespace tidekv
