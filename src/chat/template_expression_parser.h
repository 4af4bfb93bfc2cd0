// Expressions of the template language, in Jinja's order of precedence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/template_lexer.h"
#include "chat/template_node.h"
#include "tidekv/result.h"

namespace tidekv {

class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, const std::string& where)
      : tokens_(std::move(tokens)) {
    tree_.where = where;
  }

 protected:
  enum class Conditional : std::uint8_t { kAllowed, kNotAllowed };

  // One parser inside another: bounds the stack.
  class Nesting {
   public:
    explicit Nesting(int& depth) : depth_(depth) { ++depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    ~Nesting() { --depth_; }

   private:
    int& depth_;
  };
  Status check_nesting() const;

  const Token& current() const { return tokens_[at_]; }
  const Token& next_token() const { return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_]; }
  void pass() { at_ += at_ + 1 < tokens_.size() ? 1 : 0; }
  bool at_operator(std::string_view text) const {
    return current().kind == TokenKind::kOperator && current().text == text;
  }
  bool at_name(std::string_view text) const {
    return current().kind == TokenKind::kName && current().text == text;
  }
  bool skip_operator(std::string_view text);
  bool skip_name(std::string_view text);
  Status expect_operator(std::string_view text);
  Result<std::string> expect_name(std::string_view what);
  // "where: line N: what".
  Error bad(const std::string& what, ErrorCode code = ErrorCode::kBadFile) const;
  Error unexpected(std::string_view expected) const;

  Result<NodeId> add(Node node);
  Node node_at(NodeKind kind, std::string text = "") const;
  const Node& node(NodeId id) const { return tree_.nodes[static_cast<std::size_t>(id)]; }

  Result<NodeId> expression() { return conditional(); }
  // Expressions with commas between them make a tuple.
  Result<NodeId> tuple(Conditional conditionals);
  // `value` and the filters behind it.
  Result<NodeId> filter(NodeId value);
  // One filter, behind a passed | or the tag's name.
  Result<NodeId> one_filter(NodeId value);
  bool at_expression_end() const;

  TemplateTree tree_;
  int nesting_ = 0;
  std::set<std::string, std::less<>> assigned_;  // every name that the template gives a value

 private:
  Result<NodeId> conditional();
  Result<NodeId> logical_or();
  Result<NodeId> logical_and();
  Result<NodeId> logical_not();
  Result<NodeId> comparison();
  Result<std::string> comparison_operator();
  Result<NodeId> binary(std::size_t level);
  enum class Filters : std::uint8_t { kAllowed, kNotAllowed };
  Result<NodeId> unary(Filters filters);
  Result<NodeId> primary();
  Result<NodeId> name_or_constant();
  Result<NodeId> text_literal();
  Result<NodeId> parenthesis();
  Result<NodeId> list();
  Result<NodeId> dict();
  Result<NodeId> postfix(NodeId value);
  Result<NodeId> filters_and_tests(NodeId value);
  Result<NodeId> attribute(NodeId value);
  Result<NodeId> subscript(NodeId value);
  Result<NodeId> subscript_part();
  Result<NodeId> call(NodeId callee);
  Result<NodeId> test(NodeId value);
  Status arguments(Node& node);
  Status check_builtin(const Node& node) const;
  Status check_inner_builtin(const Node& node) const;

  std::vector<Token> tokens_;  // never empty: the last is kEnd
  std::size_t at_ = 0;
};

}  // namespace tidekv
