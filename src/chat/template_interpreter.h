// Runs a parsed chat template.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/template_builtins.h"
#include "chat/template_node.h"
#include "chat/template_runtime.h"
#include "chat/template_value.h"
#include "tidekv/result.h"

namespace tidekv {

class TemplateInterpreter {
 public:
  TemplateInterpreter(const TemplateTree& tree, TemplateRuntime& runtime)
      : tree_(tree), runtime_(runtime) {}

  // Appends what the template prints, seeing the variables of `globals`.
  Status run(Scope& globals, TextBuilder& out);

 private:
  // What follows a statement: the next one, or the loop's end or next turn.
  enum class Flow : std::uint8_t { kNext, kBreak, kContinue };

  // Bounds the stack: every node inside another passes here.
  class Level {
   public:
    explicit Level(int& depth) : depth_(depth) { ++depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    ~Level() { --depth_; }

   private:
    int& depth_;
  };

  const Node& node(NodeId id) const { return tree_.nodes[static_cast<std::size_t>(id)]; }
  // Counts the step and remembers the line for errors.
  Status enter(const Node& node);

  // Statements (template_interpreter.cc).
  Result<Flow> execute(NodeId id, Scope& scope, TextBuilder& out);
  Result<Flow> run_block(const Node& node, Scope& scope, TextBuilder& out);
  Result<Flow> run_if(const Node& node, Scope& scope, TextBuilder& out);
  Result<Flow> run_for(const Node& node, Scope& scope, TextBuilder& out);
  Result<Flow> run_turn(const Node& node, Scope& scope, LoopState& loop, TextBuilder& out);
  Result<const std::vector<Value>*> loop_items(const Node& node, Scope& scope);
  Result<Flow> run_with(const Node& node, Scope& scope, TextBuilder& out);
  Result<Flow> run_set(const Node& node, Scope& scope);
  // A block whose output becomes a value or passes filters.
  Result<Flow> run_captured(const Node& node, Scope& scope, TextBuilder& out);
  Status define_macro(NodeId id, Scope& scope);
  Status print(const Node& node, Scope& scope, TextBuilder& out);
  Status assign(NodeId target, Value value, Scope& scope);
  Status assign_attribute(const Node& target, Value value, Scope& scope);
  Status set_variable(Scope& scope, std::string_view name, Value value);

  // Expressions (template_evaluator.cc).
  Result<Value> evaluate(NodeId id, Scope& scope);
  Result<Value> evaluate_operation(const Node& node, Scope& scope);
  Result<Value> variable(const Node& node, const Scope& scope);
  Result<Value> list(const Node& node, Scope& scope, ValueList::Kind kind);
  Result<Value> dict(const Node& node, Scope& scope);
  Result<Value> comparison(const Node& node, Scope& scope);
  Result<Value> concatenation(const Node& node, Scope& scope);
  Result<Value> conditional(const Node& node, Scope& scope);
  Result<Value> subscript(const Node& node, Scope& scope);
  Result<Value> slice(const Node& node, const Value& object, Scope& scope);
  Result<Value> filtered(const Node& node, Scope& scope);
  Result<Value> tested(const Node& node, Scope& scope);
  Result<Value> method_call(const Node& node, Scope& scope);
  Result<Value> call(const Node& node, Scope& scope);
  Result<Value> call_function(GlobalFunction function, const CallArguments& arguments);
  Result<Value> call_macro(const Macro& macro, CallArguments arguments);
  Status bind_parameters(const Node& macro, CallArguments arguments, Scope& scope);
  // Children from `first` on, and the named ones.
  Result<CallArguments> arguments(const Node& node, std::size_t first, Scope& scope);
  // A filter on a value that is no node; filters before it in the chain come first.
  Result<Value> apply_filters(NodeId id, const Value& value, Scope& scope);

  const TemplateTree& tree_;
  TemplateRuntime& runtime_;
  int depth_ = 0;
};

}  // namespace tidekv
