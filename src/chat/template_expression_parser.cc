#include "chat/template_expression_parser.h"

#include <algorithm>
#include <array>

#include "base/json_value.h"
#include "chat/template_builtins.h"

namespace tidekv {
namespace {

constexpr int kMaxNesting = 100;  // of blocks and brackets; templates have about ten
constexpr int kMaxDepth = 200;    // of the tree: also long chains of + or . count
constexpr std::size_t kMaxNodes = 100'000;

std::string shown(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "text outside a tag";
    case TokenKind::kOutputBegin:
      return "'{{'";
    case TokenKind::kOutputEnd:
      return "'}}'";
    case TokenKind::kBlockBegin:
      return "'{%'";
    case TokenKind::kBlockEnd:
      return "'%}'";
    case TokenKind::kText:
      return "the string " + in_quotes(token.text);
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return "a number";
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return in_quotes(token.text);
  }
}

bool contains(std::string_view operators, std::string_view text) {
  std::size_t at = 0;
  while (at < operators.size()) {
    const std::size_t end = std::min(operators.find(' ', at), operators.size());
    if (operators.substr(at, end - at) == text) {
      return true;
    }
    at = end + 1;
  }
  return false;
}

}  // namespace

Status ExpressionParser::check_nesting() const {
  if (nesting_ > kMaxNesting) {
    return bad("nested deeper than " + std::to_string(kMaxNesting) + " levels");
  }
  return Ok{};
}

bool ExpressionParser::skip_operator(std::string_view text) {
  const bool found = at_operator(text);
  if (found) {
    pass();
  }
  return found;
}

bool ExpressionParser::skip_name(std::string_view text) {
  const bool found = at_name(text);
  if (found) {
    pass();
  }
  return found;
}

Status ExpressionParser::expect_operator(std::string_view text) {
  if (!skip_operator(text)) {
    return unexpected("'" + std::string(text) + "'");
  }
  return Ok{};
}

Result<std::string> ExpressionParser::expect_name(std::string_view what) {
  if (current().kind != TokenKind::kName) {
    return unexpected(what);
  }
  std::string name = current().text;
  pass();
  return name;
}

Error ExpressionParser::bad(const std::string& what, ErrorCode code) const {
  return Error{code, tree_.where + ": line " + std::to_string(current().line) + ": " + what};
}

Error ExpressionParser::unexpected(std::string_view expected) const {
  return bad("unexpected " + shown(current()) + "; expected " + std::string(expected));
}

Node ExpressionParser::node_at(NodeKind kind, std::string text) const {
  return Node{.kind = kind, .line = current().line, .text = std::move(text)};
}

Result<NodeId> ExpressionParser::add(Node made) {
  for (const NodeId child : made.children) {
    made.depth = std::max(made.depth, child == kNoNode ? 0 : node(child).depth + 1);
  }
  for (const auto& [name, value] : made.named) {
    made.depth = std::max(made.depth, node(value).depth + 1);
  }
  if (made.depth > kMaxDepth) {
    return bad("an expression or block of more than " + std::to_string(kMaxDepth) + " levels");
  }
  if (tree_.nodes.size() >= kMaxNodes) {
    return bad("the template is too large");
  }
  tree_.nodes.push_back(std::move(made));
  return static_cast<NodeId>(tree_.nodes.size() - 1);
}

bool ExpressionParser::at_expression_end() const {
  return current().kind == TokenKind::kOutputEnd || current().kind == TokenKind::kBlockEnd ||
         current().kind == TokenKind::kEnd || at_operator(")");
}

Result<NodeId> ExpressionParser::tuple(Conditional conditionals) {
  Node made = node_at(NodeKind::kTuple);
  bool comma = false;
  while (!at_expression_end() && !at_name("in") && !at_name("if")) {
    auto item = conditionals == Conditional::kAllowed ? conditional() : logical_or();
    TIDEKV_ASSIGN(const NodeId id, std::move(item));
    made.children.push_back(id);
    if (!skip_operator(",")) {
      break;
    }
    comma = true;
  }
  if (made.children.empty()) {
    return unexpected("an expression");
  }
  if (!comma) {
    return made.children[0];
  }
  return add(std::move(made));
}

Result<NodeId> ExpressionParser::conditional() {
  const Nesting nesting(nesting_);
  TIDEKV_TRY(check_nesting());
  TIDEKV_ASSIGN(NodeId value, logical_or());
  while (at_name("if")) {
    Node made = node_at(NodeKind::kConditional);
    pass();
    TIDEKV_ASSIGN(const NodeId condition, logical_or());
    NodeId other = kNoNode;
    if (skip_name("else")) {
      TIDEKV_ASSIGN(other, conditional());
    }
    made.children = {condition, value, other};
    TIDEKV_ASSIGN(value, add(std::move(made)));
  }
  return value;
}

Result<NodeId> ExpressionParser::logical_or() {
  TIDEKV_ASSIGN(NodeId left, logical_and());
  while (at_name("or")) {
    Node made = node_at(NodeKind::kOr);
    pass();
    TIDEKV_ASSIGN(const NodeId right, logical_and());
    made.children = {left, right};
    TIDEKV_ASSIGN(left, add(std::move(made)));
  }
  return left;
}

Result<NodeId> ExpressionParser::logical_and() {
  TIDEKV_ASSIGN(NodeId left, logical_not());
  while (at_name("and")) {
    Node made = node_at(NodeKind::kAnd);
    pass();
    TIDEKV_ASSIGN(const NodeId right, logical_not());
    made.children = {left, right};
    TIDEKV_ASSIGN(left, add(std::move(made)));
  }
  return left;
}

Result<NodeId> ExpressionParser::logical_not() {
  if (!at_name("not")) {
    return comparison();
  }
  const Nesting nesting(nesting_);
  TIDEKV_TRY(check_nesting());
  Node made = node_at(NodeKind::kNot);
  pass();
  TIDEKV_ASSIGN(const NodeId value, logical_not());
  made.children = {value};
  return add(std::move(made));
}

// The comparison operator here, passed; "" if there is none.
Result<std::string> ExpressionParser::comparison_operator() {
  if (current().kind == TokenKind::kOperator && contains("== != < <= > >=", current().text)) {
    std::string text = current().text;
    pass();
    return text;
  }
  if (skip_name("in")) {
    return std::string("in");
  }
  if (at_name("not") && next_token().kind == TokenKind::kName && next_token().text == "in") {
    pass();
    pass();
    return std::string("not in");
  }
  return std::string();
}

Result<NodeId> ExpressionParser::comparison() {
  Node made = node_at(NodeKind::kCompare);
  TIDEKV_ASSIGN(const NodeId first, binary(0));
  made.children = {first};
  while (true) {
    TIDEKV_ASSIGN(std::string text, comparison_operator());
    if (text.empty()) {
      break;
    }
    made.names.push_back(std::move(text));
    TIDEKV_ASSIGN(const NodeId operand, binary(0));
    made.children.push_back(operand);
  }
  if (made.names.empty()) {
    return first;
  }
  return add(std::move(made));
}

// All levels bind to the left, also ** as in Jinja.
Result<NodeId> ExpressionParser::binary(std::size_t level) {
  constexpr std::array<std::string_view, 4> kLevels = {"+ -", "~", "* / // %", "**"};
  if (level == kLevels.size()) {
    return unary(Filters::kAllowed);
  }
  TIDEKV_ASSIGN(NodeId left, binary(level + 1));
  Node concat = node_at(NodeKind::kConcat);
  concat.children = {left};
  while (current().kind == TokenKind::kOperator && contains(kLevels[level], current().text)) {
    Node made = node_at(NodeKind::kBinary, current().text);
    pass();
    TIDEKV_ASSIGN(const NodeId right, binary(level + 1));
    if (made.text == "~") {
      concat.children.push_back(right);
      continue;
    }
    made.children = {left, right};
    TIDEKV_ASSIGN(left, add(std::move(made)));
  }
  if (concat.children.size() > 1) {
    return add(std::move(concat));
  }
  return left;
}

Result<NodeId> ExpressionParser::unary(Filters filters) {
  if (at_operator("-") || at_operator("+")) {
    const Nesting nesting(nesting_);
    TIDEKV_TRY(check_nesting());
    Node made = node_at(at_operator("-") ? NodeKind::kNegative : NodeKind::kPositive);
    pass();
    TIDEKV_ASSIGN(const NodeId value, unary(Filters::kNotAllowed));
    made.children = {value};
    TIDEKV_ASSIGN(const NodeId id, add(std::move(made)));
    TIDEKV_ASSIGN(const NodeId whole, postfix(id));
    return filters == Filters::kAllowed ? filters_and_tests(whole) : Result<NodeId>(whole);
  }
  TIDEKV_ASSIGN(const NodeId value, primary());
  TIDEKV_ASSIGN(const NodeId whole, postfix(value));
  return filters == Filters::kAllowed ? filters_and_tests(whole) : Result<NodeId>(whole);
}

}  // namespace tidekv
