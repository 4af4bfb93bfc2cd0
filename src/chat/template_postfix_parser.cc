// What stands behind a value: attributes, subscripts, calls, filters and tests.
#include "base/json_value.h"
#include "chat/template_builtins.h"
#include "chat/template_expression_parser.h"

namespace tidekv {

Result<NodeId> ExpressionParser::postfix(NodeId value) {
  while (true) {
    if (at_operator(".")) {
      TIDEKV_ASSIGN(value, attribute(value));
    } else if (at_operator("[")) {
      TIDEKV_ASSIGN(value, subscript(value));
    } else if (at_operator("(")) {
      TIDEKV_ASSIGN(value, call(value));
    } else {
      return value;
    }
  }
}

Result<NodeId> ExpressionParser::filters_and_tests(NodeId value) {
  while (true) {
    if (at_operator("|")) {
      TIDEKV_ASSIGN(value, filter(value));
    } else if (at_name("is")) {
      TIDEKV_ASSIGN(value, test(value));
    } else if (at_operator("(")) {
      TIDEKV_ASSIGN(value, call(value));
    } else {
      return value;
    }
  }
}

Result<NodeId> ExpressionParser::attribute(NodeId value) {
  Node made = node_at(NodeKind::kAttribute);
  pass();
  if (current().kind == TokenKind::kInteger) {
    made.kind = NodeKind::kSubscript;
    Node number = node_at(NodeKind::kInteger);
    number.integer = current().integer;
    TIDEKV_ASSIGN(const NodeId index, add(std::move(number)));
    pass();
    made.children = {value, index};
    return add(std::move(made));
  }
  if (current().text.starts_with("__")) {
    return bad("attribute " + in_quotes(current().text) +
                   ": names that start with two underscores are not supported",
               ErrorCode::kUnsupported);
  }
  TIDEKV_ASSIGN(made.text, expect_name("the name of an attribute"));
  made.children = {value};
  return add(std::move(made));
}

Result<NodeId> ExpressionParser::subscript(NodeId value) {
  Node made = node_at(NodeKind::kSubscript);
  pass();
  Node keys = node_at(NodeKind::kTuple);
  while (!at_operator("]")) {
    TIDEKV_ASSIGN(const NodeId part, subscript_part());
    keys.children.push_back(part);
    if (!skip_operator(",")) {
      break;
    }
  }
  TIDEKV_TRY(expect_operator("]"));
  if (keys.children.size() != 1) {
    return bad("a subscript takes one key or slice");
  }
  made.children = {value, keys.children[0]};
  return add(std::move(made));
}

// A key, or start:stop:step of which any may be missing.
Result<NodeId> ExpressionParser::subscript_part() {
  Node made = node_at(NodeKind::kSlice);
  made.children = {kNoNode, kNoNode, kNoNode};
  if (!at_operator(":")) {
    TIDEKV_ASSIGN(made.children[0], expression());
    if (!at_operator(":")) {
      return made.children[0];
    }
  }
  for (std::size_t i = 1; i < 3 && skip_operator(":"); ++i) {
    if (!at_operator(":") && !at_operator("]") && !at_operator(",")) {
      TIDEKV_ASSIGN(made.children[i], expression());
    }
  }
  return add(std::move(made));
}

Status ExpressionParser::arguments(Node& made) {
  TIDEKV_TRY(expect_operator("("));
  while (!at_operator(")")) {
    if (at_operator("*") || at_operator("**")) {
      return bad("arguments unpacked with " + current().text + " are not supported",
                 ErrorCode::kUnsupported);
    }
    if (current().kind == TokenKind::kName && next_token().kind == TokenKind::kOperator &&
        next_token().text == "=") {
      std::string name = current().text;
      pass();
      pass();
      for (const auto& [other, value] : made.named) {
        if (other == name) {
          return bad("argument " + in_quotes(name) + " is given twice");
        }
      }
      TIDEKV_ASSIGN(const NodeId value, expression());
      made.named.emplace_back(std::move(name), value);
    } else if (!made.named.empty()) {
      return unexpected("name=value: arguments without a name come first");
    } else {
      TIDEKV_ASSIGN(const NodeId value, expression());
      made.children.push_back(value);
    }
    if (!skip_operator(",")) {
      break;
    }
  }
  return expect_operator(")");
}

Result<NodeId> ExpressionParser::call(NodeId callee) {
  const Node target = node(callee);
  Node made = node_at(NodeKind::kCall, target.text);
  if (target.kind == NodeKind::kAttribute) {
    made.kind = NodeKind::kMethod;
    made.children = {target.children[0]};
    if (!is_method_name(made.text)) {
      return bad("method " + in_quotes(made.text) + " is not supported", ErrorCode::kUnsupported);
    }
  } else if (target.kind != NodeKind::kName) {
    return bad("only functions, macros and methods can be called", ErrorCode::kUnsupported);
  }
  tree_.nodes[static_cast<std::size_t>(callee)].kind = NodeKind::kNone;  // it is no value by itself
  TIDEKV_TRY(arguments(made));
  return add(std::move(made));
}

Result<NodeId> ExpressionParser::filter(NodeId value) {
  while (skip_operator("|")) {
    TIDEKV_ASSIGN(value, one_filter(value));
  }
  return value;
}

Result<NodeId> ExpressionParser::one_filter(NodeId value) {
  Node made = node_at(NodeKind::kFilter);
  TIDEKV_ASSIGN(made.text, expect_name("the name of a filter"));
  made.children = {value};
  if (at_operator("(")) {
    TIDEKV_TRY(arguments(made));
  }
  TIDEKV_TRY(check_builtin(made));
  return add(std::move(made));
}

Result<NodeId> ExpressionParser::test(NodeId value) {
  pass();
  const bool negated = skip_name("not");
  Node made = node_at(NodeKind::kTest);
  Node inverse = node_at(NodeKind::kNot);
  TIDEKV_ASSIGN(made.text, expect_name("the name of a test"));
  made.children = {value};
  const TokenKind kind = current().kind;
  if (at_operator("(")) {
    TIDEKV_TRY(arguments(made));
  } else if (kind == TokenKind::kText || kind == TokenKind::kInteger || kind == TokenKind::kFloat ||
             at_operator("[") || at_operator("{") ||
             (kind == TokenKind::kName && !at_name("else") && !at_name("or") && !at_name("and"))) {
    if (at_name("is")) {
      return bad("tests cannot follow one another; expected 'and' between them");
    }
    TIDEKV_ASSIGN(const NodeId operand, primary());
    TIDEKV_ASSIGN(const NodeId whole, postfix(operand));
    made.children.push_back(whole);
  }
  TIDEKV_TRY(check_builtin(made));
  TIDEKV_ASSIGN(const NodeId id, add(std::move(made)));
  if (!negated) {
    return id;
  }
  inverse.children = {id};
  return add(std::move(inverse));
}

Status ExpressionParser::check_builtin(const Node& made) const {
  const bool is_filter = made.kind == NodeKind::kFilter;
  const std::string what = (is_filter ? "filter " : "test ") + in_quotes(made.text);
  const Builtin* builtin = is_filter ? find_filter(made.text) : find_test(made.text);
  if (builtin == nullptr) {
    return bad(what + " is not supported", ErrorCode::kUnsupported);
  }
  std::vector<std::string_view> names;
  for (const auto& [name, value] : made.named) {
    names.push_back(name);
  }
  const std::string problem = argument_problem(*builtin, made.children.size() - 1, names);
  if (!problem.empty()) {
    return bad(what + ": " + problem, ErrorCode::kUnsupported);
  }
  return check_inner_builtin(made);
}

// The filter or test that map, select and their kin are to apply, where it is written out.
Status ExpressionParser::check_inner_builtin(const Node& made) const {
  const Builtin* outer = made.kind == NodeKind::kFilter ? find_filter(made.text) : nullptr;
  if (outer == nullptr || outer->rest_from < 0 ||
      made.children.size() <= static_cast<std::size_t>(outer->rest_from)) {
    return Ok{};
  }
  const Node& inner = node(made.children[static_cast<std::size_t>(outer->rest_from)]);
  const bool maps = made.text == "map";
  if (inner.kind == NodeKind::kText &&
      (maps ? find_filter(inner.text) : find_test(inner.text)) == nullptr) {
    return bad((maps ? "filter " : "test ") + in_quotes(inner.text) + " is not supported",
               ErrorCode::kUnsupported);
  }
  return Ok{};
}

}  // namespace tidekv
