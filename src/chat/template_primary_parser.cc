// What an expression starts from: names, literals and brackets.
#include <utility>

#include "chat/template_expression_parser.h"

namespace tidekv {

Result<NodeId> ExpressionParser::primary() {
  switch (current().kind) {
    case TokenKind::kName:
      return name_or_constant();
    case TokenKind::kText:
      return text_literal();
    case TokenKind::kInteger:
    case TokenKind::kFloat: {
      const bool whole = current().kind == TokenKind::kInteger;
      Node made = node_at(whole ? NodeKind::kInteger : NodeKind::kFloat);
      made.integer = current().integer;
      made.number = current().number;
      pass();
      return add(std::move(made));
    }
    default:
      break;
  }
  if (at_operator("(")) {
    return parenthesis();
  }
  if (at_operator("[")) {
    return list();
  }
  return at_operator("{") ? dict() : unexpected("an expression");
}

Result<NodeId> ExpressionParser::name_or_constant() {
  const std::string& name = current().text;
  Node made = node_at(NodeKind::kName, name);
  if (name == "true" || name == "True") {
    made.kind = NodeKind::kTrue;
  } else if (name == "false" || name == "False") {
    made.kind = NodeKind::kFalse;
  } else if (name == "none" || name == "None") {
    made.kind = NodeKind::kNone;
  }
  pass();
  return add(std::move(made));
}

// Literals side by side are one.
Result<NodeId> ExpressionParser::text_literal() {
  Node made = node_at(NodeKind::kText);
  while (current().kind == TokenKind::kText) {
    made.text += current().text;
    pass();
  }
  return add(std::move(made));
}

Result<NodeId> ExpressionParser::parenthesis() {
  Node made = node_at(NodeKind::kTuple);
  pass();
  if (skip_operator(")")) {
    return add(std::move(made));
  }
  TIDEKV_ASSIGN(const NodeId value, tuple(Conditional::kAllowed));
  TIDEKV_TRY(expect_operator(")"));
  return value;
}

Result<NodeId> ExpressionParser::list() {
  Node made = node_at(NodeKind::kList);
  pass();
  while (!at_operator("]")) {
    TIDEKV_ASSIGN(const NodeId item, expression());
    made.children.push_back(item);
    if (!skip_operator(",")) {
      break;
    }
  }
  TIDEKV_TRY(expect_operator("]"));
  return add(std::move(made));
}

Result<NodeId> ExpressionParser::dict() {
  Node made = node_at(NodeKind::kDict);
  pass();
  while (!at_operator("}")) {
    TIDEKV_ASSIGN(const NodeId key, expression());
    TIDEKV_TRY(expect_operator(":"));
    TIDEKV_ASSIGN(const NodeId value, expression());
    made.children.push_back(key);
    made.children.push_back(value);
    if (!skip_operator(",")) {
      break;
    }
  }
  TIDEKV_TRY(expect_operator("}"));
  return add(std::move(made));
}

}  // namespace tidekv
