#include "chat/template_parser.h"

#include <array>
#include <initializer_list>
#include <utility>

#include "base/json_value.h"
#include "chat/template_expression_parser.h"

namespace tidekv {
namespace {

constexpr std::array<std::string_view, 5> kFunctions = {"range", "dict", "namespace",
                                                        "raise_exception", "strftime_now"};
// What Jinja predefines and this interpreter does not.
constexpr std::array<std::string_view, 8> kUnsupportedNames = {
    "lipsum", "cycler", "joiner", "caller", "varargs", "kwargs", "self", "super"};

template <typename Names>
bool is_one_of(std::string_view name, const Names& names) {
  for (const std::string_view other : names) {
    if (name == other) {
      return true;
    }
  }
  return false;
}

using EndNames = std::initializer_list<std::string_view>;

class Parser : private ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;

  Result<TemplateTree> run() {
    TIDEKV_ASSIGN(tree_.root, block({}));
    TIDEKV_TRY(check_names());
    return std::move(tree_);
  }

 private:
  // Statements up to the tag with one of the names `ends`, whose name is then the current token; up
  // to the end of the template if there are none.
  Result<NodeId> block(EndNames ends) {
    const Nesting nesting(nesting_);
    TIDEKV_TRY(check_nesting());
    Node made = node_at(NodeKind::kBlock);
    while (current().kind != TokenKind::kEnd) {
      if (current().kind == TokenKind::kBlockBegin) {
        if (next_token().kind == TokenKind::kName && is_one_of(next_token().text, ends)) {
          pass();
          return add(std::move(made));
        }
        pass();
      }
      TIDEKV_ASSIGN(const NodeId id, statement());
      made.children.push_back(id);
    }
    if (ends.size() > 0) {
      return bad("the block that began in line " + std::to_string(made.line) +
                 " is not closed; expected '{% " + std::string(*(ends.end() - 1)) + " %}'");
    }
    return add(std::move(made));
  }

  // Passes the name that ended a block, and the tag's end.
  Status close() {
    pass();
    return close_tag();
  }
  Status close_tag() {
    if (current().kind != TokenKind::kBlockEnd) {
      return unexpected("'%}'");
    }
    pass();
    return Ok{};
  }

  // Text, {{ ... }}, or what stands behind a passed {%.
  Result<NodeId> statement() {
    if (current().kind == TokenKind::kData) {
      Node made = node_at(NodeKind::kData, current().text);
      pass();
      return add(std::move(made));
    }
    if (current().kind == TokenKind::kOutputBegin) {
      Node made = node_at(NodeKind::kOutput);
      pass();
      TIDEKV_ASSIGN(const NodeId value, tuple(Conditional::kAllowed));
      if (current().kind != TokenKind::kOutputEnd) {
        return unexpected("'}}'");
      }
      pass();
      made.children = {value};
      return add(std::move(made));
    }
    return tag();
  }

  Result<NodeId> tag() {
    struct Tag {
      std::string_view name;
      Result<NodeId> (Parser::*parse)();
    };
    constexpr std::array<Tag, 9> kTags = {{{"if", &Parser::if_tag},
                                           {"for", &Parser::for_tag},
                                           {"set", &Parser::set_tag},
                                           {"macro", &Parser::macro_tag},
                                           {"filter", &Parser::filter_tag},
                                           {"with", &Parser::with_tag},
                                           {"generation", &Parser::generation_tag},
                                           {"break", &Parser::loop_control_tag},
                                           {"continue", &Parser::loop_control_tag}}};
    if (current().kind != TokenKind::kName) {
      return unexpected("the name of a tag");
    }
    for (const Tag& known : kTags) {
      if (at_name(known.name)) {
        return (this->*known.parse)();
      }
    }
    if (current().text.starts_with("end") || at_name("else") || at_name("elif")) {
      return bad("unexpected tag " + in_quotes(current().text));
    }
    return bad("tag " + in_quotes(current().text) + " is not supported", ErrorCode::kUnsupported);
  }

  Result<NodeId> if_tag() {
    Node made = node_at(NodeKind::kIf);
    do {
      pass();
      TIDEKV_ASSIGN(const NodeId condition, tuple(Conditional::kNotAllowed));
      TIDEKV_TRY(close_tag());
      TIDEKV_ASSIGN(const NodeId body, block({"elif", "else", "endif"}));
      made.children.push_back(condition);
      made.children.push_back(body);
    } while (at_name("elif"));
    if (at_name("else")) {
      TIDEKV_TRY(close());
      TIDEKV_ASSIGN(const NodeId body, block({"endif"}));
      made.children.push_back(body);
    }
    TIDEKV_TRY(close());
    return add(std::move(made));
  }

  Result<NodeId> for_tag() {
    Node made = node_at(NodeKind::kFor);
    pass();
    TIDEKV_ASSIGN(const NodeId target, names_target());
    if (!skip_name("in")) {
      return unexpected("'in'");
    }
    TIDEKV_ASSIGN(const NodeId items, tuple(Conditional::kNotAllowed));
    NodeId condition = kNoNode;
    if (skip_name("if")) {
      TIDEKV_ASSIGN(condition, expression());
    }
    if (at_name("recursive")) {
      return bad("recursive loops are not supported", ErrorCode::kUnsupported);
    }
    TIDEKV_TRY(close_tag());
    ++loops_;
    auto loop_body = block({"else", "endfor"});
    --loops_;
    TIDEKV_ASSIGN(const NodeId body, std::move(loop_body));
    NodeId other = kNoNode;
    if (at_name("else")) {
      TIDEKV_TRY(close());
      TIDEKV_ASSIGN(other, block({"endfor"}));
    }
    TIDEKV_TRY(close());
    made.children = {target, items, condition, body, other};
    return add(std::move(made));
  }

  // break and continue. A macro's body is in no loop, wherever it stands.
  Result<NodeId> loop_control_tag() {
    Node made = node_at(at_name("break") ? NodeKind::kBreak : NodeKind::kContinue);
    if (loops_ == 0) {
      return bad(in_quotes(current().text) + " outside of a loop");
    }
    TIDEKV_TRY(close());
    return add(std::move(made));
  }

  // A name, or names with commas between them.
  Result<NodeId> names_target() {
    Node made = node_at(NodeKind::kTuple);
    const bool parenthesis = skip_operator("(");
    bool comma = false;
    do {
      if (comma && (at_name("in") || at_operator("=") || at_operator(")"))) {
        break;
      }
      Node name = node_at(NodeKind::kName, current().text);
      TIDEKV_ASSIGN(const std::string text, expect_name("the name of a variable"));
      TIDEKV_TRY(check_assignable(text));
      TIDEKV_ASSIGN(const NodeId id, add(std::move(name)));
      made.children.push_back(id);
      comma = comma || at_operator(",");
    } while (skip_operator(","));
    if (parenthesis) {
      TIDEKV_TRY(expect_operator(")"));
    }
    return comma ? add(std::move(made)) : Result<NodeId>(made.children[0]);
  }

  Status check_assignable(const std::string& name) {
    constexpr std::array<std::string_view, 7> kConstants = {"true",  "false", "none", "True",
                                                            "False", "None",  "loop"};
    if (is_one_of(name, kConstants)) {
      return bad("cannot give " + in_quotes(name) + " a value");
    }
    assigned_.insert(name);
    return Ok{};
  }

  Result<NodeId> set_target() {
    if (next_token().kind != TokenKind::kOperator || next_token().text != ".") {
      return names_target();
    }
    Node made = node_at(NodeKind::kNamespaceTarget, current().text);
    TIDEKV_ASSIGN(made.text, expect_name("the name of a variable"));
    pass();
    TIDEKV_ASSIGN(std::string attribute, expect_name("the name of an attribute"));
    if (attribute.starts_with('_')) {
      return bad("attribute " + in_quotes(attribute) + " of a namespace starts with an underscore",
                 ErrorCode::kUnsupported);
    }
    made.names.push_back(std::move(attribute));
    return add(std::move(made));
  }

  Result<NodeId> set_tag() {
    Node made = node_at(NodeKind::kSet);
    pass();
    TIDEKV_ASSIGN(const NodeId target, set_target());
    if (skip_operator("=")) {
      TIDEKV_ASSIGN(const NodeId value, tuple(Conditional::kAllowed));
      TIDEKV_TRY(close_tag());
      made.children = {target, value};
      return add(std::move(made));
    }
    made.kind = NodeKind::kSetBlock;
    NodeId filters = kNoNode;
    TIDEKV_ASSIGN(filters, filter(kNoNode));
    TIDEKV_TRY(close_tag());
    TIDEKV_ASSIGN(const NodeId body, block({"endset"}));
    TIDEKV_TRY(close());
    made.children = {target, body, filters};
    return add(std::move(made));
  }

  Result<NodeId> filter_tag() {
    Node made = node_at(NodeKind::kFilterBlock);
    pass();
    TIDEKV_ASSIGN(const NodeId first, one_filter(kNoNode));  // no | before it
    TIDEKV_ASSIGN(const NodeId filters, filter(first));
    TIDEKV_TRY(close_tag());
    TIDEKV_ASSIGN(const NodeId body, block({"endfilter"}));
    TIDEKV_TRY(close());
    made.children = {body, filters};
    return add(std::move(made));
  }

  Result<NodeId> with_tag() {
    Node made = node_at(NodeKind::kWith);
    pass();
    made.children.push_back(kNoNode);
    while (current().kind != TokenKind::kBlockEnd) {
      TIDEKV_ASSIGN(const NodeId target, names_target());
      TIDEKV_TRY(expect_operator("="));
      TIDEKV_ASSIGN(const NodeId value, expression());
      made.children.push_back(target);
      made.children.push_back(value);
      if (!skip_operator(",")) {
        break;
      }
    }
    TIDEKV_TRY(close_tag());
    TIDEKV_ASSIGN(made.children[0], block({"endwith"}));
    TIDEKV_TRY(close());
    return add(std::move(made));
  }

  // Transformers' own tag: marks what the assistant says, prints its body.
  Result<NodeId> generation_tag() {
    Node made = node_at(NodeKind::kWith);
    TIDEKV_TRY(close());
    const int loops = std::exchange(loops_, 0);
    auto inner = block({"endgeneration"});
    loops_ = loops;
    TIDEKV_ASSIGN(const NodeId body, std::move(inner));
    TIDEKV_TRY(close());
    made.children = {body};
    return add(std::move(made));
  }

  Result<NodeId> macro_tag() {
    Node made = node_at(NodeKind::kMacro);
    pass();
    TIDEKV_ASSIGN(made.text, expect_name("the name of a macro"));
    TIDEKV_TRY(check_assignable(made.text));
    made.children.push_back(kNoNode);
    TIDEKV_TRY(expect_operator("("));
    while (!at_operator(")")) {
      TIDEKV_TRY(macro_parameter(made));
      if (!skip_operator(",")) {
        break;
      }
    }
    TIDEKV_TRY(expect_operator(")"));
    TIDEKV_TRY(close_tag());
    const int loops = std::exchange(loops_, 0);
    auto inner = block({"endmacro"});
    loops_ = loops;
    TIDEKV_ASSIGN(made.children[0], std::move(inner));
    TIDEKV_TRY(close());
    return add(std::move(made));
  }

  Status macro_parameter(Node& macro) {
    TIDEKV_ASSIGN(std::string name, expect_name("the name of a parameter"));
    TIDEKV_TRY(check_assignable(name));
    if (is_one_of(name, macro.names)) {
      return bad("parameter " + in_quotes(name) + " appears twice");
    }
    NodeId value = kNoNode;
    if (skip_operator("=")) {
      TIDEKV_ASSIGN(value, expression());
    } else if (macro.children.back() != kNoNode) {
      return bad("parameter " + in_quotes(name) + " needs a default, as the one before it has");
    }
    macro.names.push_back(std::move(name));
    macro.children.push_back(value);
    return Ok{};
  }

  // Functions that nothing defines, and names that mean something else in Jinja.
  Status check_names() const {
    for (const Node& made : tree_.nodes) {
      const bool name = made.kind == NodeKind::kName;
      if ((!name && made.kind != NodeKind::kCall) || assigned_.contains(made.text)) {
        continue;
      }
      const bool known =
          name ? !is_one_of(made.text, kUnsupportedNames) : is_one_of(made.text, kFunctions);
      if (!known) {
        return Error{ErrorCode::kUnsupported, tree_.where + ": line " + std::to_string(made.line) +
                                                  ": " + (name ? "variable " : "function ") +
                                                  in_quotes(made.text) + " is not supported"};
      }
    }
    return Ok{};
  }

  int loops_ = 0;  // that the current tag stands in
};

}  // namespace

Result<TemplateTree> parse_template(std::string_view source, const std::string& where) {
  TIDEKV_ASSIGN(std::vector<Token> tokens, lex_template(source, where));
  return Parser(std::move(tokens), where).run();
}

}  // namespace tidekv
