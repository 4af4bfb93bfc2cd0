#include "chat/template_interpreter.h"

#include "base/json_value.h"
#include "chat/template_operators.h"

namespace tidekv {
namespace {

constexpr int kMaxDepth = 600;  // of nodes that run inside one another, calls of macros included

}  // namespace

Status TemplateInterpreter::run(Scope& globals, TextBuilder& out) {
  Scope* scope = runtime_.make_scope(&globals);
  TIDEKV_TRY(execute(tree_.root, *scope, out));
  return Ok{};
}

Status TemplateInterpreter::enter(const Node& entered) {
  runtime_.set_line(entered.line);
  if (depth_ > kMaxDepth) {
    return runtime_.error("stopped: the template calls itself too deep");
  }
  return runtime_.step();
}

Result<TemplateInterpreter::Flow> TemplateInterpreter::execute(NodeId id, Scope& scope,
                                                               TextBuilder& out) {
  const Level level(depth_);
  const Node& statement = node(id);
  TIDEKV_TRY(enter(statement));
  switch (statement.kind) {
    case NodeKind::kBlock:
      return run_block(statement, scope, out);
    case NodeKind::kData:
      TIDEKV_TRY(runtime_.append(out, MarkedText{.bytes = statement.text}));
      return Flow::kNext;
    case NodeKind::kOutput:
      TIDEKV_TRY(print(statement, scope, out));
      return Flow::kNext;
    case NodeKind::kIf:
      return run_if(statement, scope, out);
    case NodeKind::kFor:
      return run_for(statement, scope, out);
    case NodeKind::kWith:
      return run_with(statement, scope, out);
    case NodeKind::kSet:
      return run_set(statement, scope);
    case NodeKind::kSetBlock:
    case NodeKind::kFilterBlock:
      return run_captured(statement, scope, out);
    case NodeKind::kMacro:
      TIDEKV_TRY(define_macro(id, scope));
      return Flow::kNext;
    case NodeKind::kBreak:
      return Flow::kBreak;
    default:
      return Flow::kContinue;
  }
}

Result<TemplateInterpreter::Flow> TemplateInterpreter::run_block(const Node& block, Scope& scope,
                                                                 TextBuilder& out) {
  for (const NodeId child : block.children) {
    TIDEKV_ASSIGN(const Flow flow, execute(child, scope, out));
    if (flow != Flow::kNext) {
      return flow;
    }
  }
  return Flow::kNext;
}

Status TemplateInterpreter::print(const Node& statement, Scope& scope, TextBuilder& out) {
  TIDEKV_ASSIGN(const Value value, evaluate(statement.children[0], scope));
  runtime_.set_line(statement.line);
  TIDEKV_ASSIGN(const MarkedText text, to_text(runtime_, value));
  return runtime_.append(out, text);
}

Result<TemplateInterpreter::Flow> TemplateInterpreter::run_if(const Node& statement, Scope& scope,
                                                              TextBuilder& out) {
  const std::vector<NodeId>& parts = statement.children;
  for (std::size_t i = 0; i + 1 < parts.size(); i += 2) {
    TIDEKV_ASSIGN(const Value condition, evaluate(parts[i], scope));
    if (is_true(condition)) {
      return execute(parts[i + 1], scope, out);
    }
  }
  return parts.size() % 2 == 1 ? execute(parts.back(), scope, out) : Result<Flow>(Flow::kNext);
}

// What the loop runs over, without the items that its condition drops.
Result<const std::vector<Value>*> TemplateInterpreter::loop_items(const Node& loop, Scope& scope) {
  TIDEKV_ASSIGN(const Value list, evaluate(loop.children[1], scope));
  runtime_.set_line(loop.line);
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_of(runtime_, list));
  if (loop.children[2] == kNoNode) {
    return items;
  }
  std::vector<Value> kept;
  Scope* inner = runtime_.make_scope(&scope);
  for (const Value& item : *items) {
    TIDEKV_TRY(assign(loop.children[0], item, *inner));
    TIDEKV_ASSIGN(const Value condition, evaluate(loop.children[2], *inner));
    if (is_true(condition)) {
      kept.push_back(item);
    }
  }
  TIDEKV_ASSIGN(const Value made, runtime_.list(std::move(kept), ValueList::Kind::kList));
  return &made.list()->items;
}

Result<TemplateInterpreter::Flow> TemplateInterpreter::run_for(const Node& statement, Scope& scope,
                                                               TextBuilder& out) {
  TIDEKV_ASSIGN(const std::vector<Value>* items, loop_items(statement, scope));
  LoopState* loop = runtime_.make_loop();
  loop->items = items;
  bool finished_turn = false;  // Jinja's else: no turn came to the end of the body
  for (; loop->index < items->size(); ++loop->index) {
    TIDEKV_ASSIGN(const Flow flow, run_turn(statement, scope, *loop, out));
    finished_turn = finished_turn || flow == Flow::kNext;
    if (flow == Flow::kBreak) {
      break;
    }
  }
  if (!finished_turn && statement.children[4] != kNoNode) {
    return execute(statement.children[4], *runtime_.make_scope(&scope), out);
  }
  return Flow::kNext;
}

// Every turn has its own variables.
Result<TemplateInterpreter::Flow> TemplateInterpreter::run_turn(const Node& statement, Scope& scope,
                                                                LoopState& loop, TextBuilder& out) {
  Scope* inner = runtime_.make_scope(&scope);
  TIDEKV_TRY(set_variable(*inner, "loop", Value{static_cast<const LoopState*>(&loop)}));
  TIDEKV_TRY(assign(statement.children[0], (*loop.items)[loop.index], *inner));
  auto flow = execute(statement.children[3], *inner, out);
  runtime_.release_scope(*inner);
  return flow;
}

Result<TemplateInterpreter::Flow> TemplateInterpreter::run_with(const Node& statement, Scope& scope,
                                                                TextBuilder& out) {
  Scope* inner = runtime_.make_scope(&scope);
  for (std::size_t i = 1; i + 1 < statement.children.size(); i += 2) {
    TIDEKV_ASSIGN(Value value, evaluate(statement.children[i + 1], scope));
    TIDEKV_TRY(assign(statement.children[i], value, *inner));
  }
  return execute(statement.children[0], *inner, out);
}

Result<TemplateInterpreter::Flow> TemplateInterpreter::run_set(const Node& statement,
                                                               Scope& scope) {
  TIDEKV_ASSIGN(Value value, evaluate(statement.children[1], scope));
  runtime_.set_line(statement.line);
  TIDEKV_TRY(assign(statement.children[0], value, scope));
  return Flow::kNext;
}

Result<TemplateInterpreter::Flow> TemplateInterpreter::run_captured(const Node& statement,
                                                                    Scope& scope,
                                                                    TextBuilder& out) {
  const bool sets = statement.kind == NodeKind::kSetBlock;
  const NodeId body = statement.children[sets ? 1 : 0];
  const NodeId filters = statement.children[sets ? 2 : 1];
  TextBuilder captured;
  Scope* inner = runtime_.make_scope(&scope);
  TIDEKV_ASSIGN(const Flow flow, execute(body, *inner, captured));
  if (flow != Flow::kNext) {
    return flow;
  }
  Value value{runtime_.text(captured)};
  if (filters != kNoNode) {
    TIDEKV_ASSIGN(value, apply_filters(filters, value, *inner));
  }
  runtime_.set_line(statement.line);
  if (sets) {
    TIDEKV_TRY(assign(statement.children[0], value, scope));
    return Flow::kNext;
  }
  TIDEKV_ASSIGN(const MarkedText text, to_text(runtime_, value));
  TIDEKV_TRY(runtime_.append(out, text));
  return Flow::kNext;
}

Status TemplateInterpreter::define_macro(NodeId id, Scope& scope) {
  for (Scope* outer = &scope; outer != nullptr; outer = outer->parent) {
    outer->has_macro = true;  // it may be called after the block that it stands in
  }
  const Macro* macro = runtime_.make_macro({.node = id, .scope = &scope});
  return set_variable(scope, node(id).text, Value{macro});
}

Status TemplateInterpreter::set_variable(Scope& scope, std::string_view name, Value value) {
  TIDEKV_TRY(runtime_.step(scope.variables.size()));
  for (auto& [other, held] : scope.variables) {
    if (other == name) {
      held = value;
      return Ok{};
    }
  }
  runtime_.count_variable();
  scope.variables.emplace_back(name, value);
  return Ok{};
}

Status TemplateInterpreter::assign(NodeId id, Value value, Scope& scope) {
  const Node& target = node(id);
  if (target.kind == NodeKind::kName) {
    return set_variable(scope, target.text, value);
  }
  if (target.kind == NodeKind::kNamespaceTarget) {
    return assign_attribute(target, value, scope);
  }
  if (value.is<Undefined>()) {
    return undefined_error(runtime_, *value.get<Undefined>());
  }
  TIDEKV_ASSIGN(const std::vector<Value>* items, items_of(runtime_, value));
  if (items->size() != target.children.size()) {
    return runtime_.error("cannot give " + std::to_string(items->size()) + " values to " +
                          std::to_string(target.children.size()) + " variables");
  }
  for (std::size_t i = 0; i < items->size(); ++i) {
    TIDEKV_TRY(set_variable(scope, node(target.children[i]).text, (*items)[i]));
  }
  return Ok{};
}

Status TemplateInterpreter::assign_attribute(const Node& target, Value value, Scope& scope) {
  TIDEKV_ASSIGN(const Value object, variable(target, scope));
  Namespace* const* space = object.get<Namespace*>();
  if (space == nullptr) {
    return runtime_.error(in_quotes(target.text) + " is a " + std::string(type_name(object)) +
                          "; only a namespace's attributes can be set");
  }
  TIDEKV_TRY(runtime_.step((*space)->attributes.size()));
  for (auto& [name, held] : (*space)->attributes) {
    if (name == target.names[0]) {
      held = value;
      return Ok{};
    }
  }
  runtime_.count_variable();
  (*space)->attributes.emplace_back(target.names[0], value);
  return Ok{};
}

}  // namespace tidekv
