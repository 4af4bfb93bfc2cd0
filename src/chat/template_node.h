// A chat template as a tree: plain data in one vector, no ownership between nodes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tidekv {

using NodeId = std::int32_t;
inline constexpr NodeId kNoNode = -1;

enum class NodeKind : std::uint8_t {
  // Expressions.
  kText,     // text
  kInteger,  // integer
  kFloat,    // number
  kTrue,
  kFalse,
  kNone,
  kName,         // text
  kList,         // children
  kTuple,        // children
  kDict,         // children: key, value, key, value...
  kNot,          // 1 child
  kNegative,     // 1 child
  kPositive,     // 1 child
  kBinary,       // text: the operator; 2 children
  kAnd,          // 2 children
  kOr,           // 2 children
  kConcat,       // children
  kCompare,      // children; operators
  kConditional,  // condition, value, other value or kNoNode
  kAttribute,    // 1 child; text
  kSubscript,    // 2 children, the second may be kSlice
  kSlice,        // start, stop, step, each may be kNoNode
  kFilter,       // value, arguments; text: the filter
  kTest,         // value, arguments; text: the test
  kCall,         // arguments; text: the function
  kMethod,       // object, arguments; text: the method
  // Statements.
  kBlock,            // children
  kData,             // text
  kOutput,           // 1 child
  kIf,               // condition, block, condition, block, ..., last block if the number is odd
  kFor,              // target, iterable, condition or kNoNode, body, other body or kNoNode
  kSet,              // target, value
  kSetBlock,         // target, body, then filters as kFilter of kNoNode
  kFilterBlock,      // body, then filters as kFilter of kNoNode
  kWith,             // body, target, value, target, value...
  kMacro,            // text: its name; children: body, then defaults or kNoNode; names: parameters
  kNamespaceTarget,  // text: the variable; names[0]: the attribute
  kBreak,
  kContinue,
};

struct Node {
  NodeKind kind = NodeKind::kNone;
  std::int32_t line = 0;   // from 1
  std::int32_t depth = 1;  // 1 + the deepest child's
  std::int64_t integer = 0;
  double number = 0.0;
  std::string text = {};
  std::vector<NodeId> children = {};
  std::vector<std::pair<std::string, NodeId>> named = {};  // keyword arguments
  std::vector<std::string> names = {};                     // kMacro; kCompare: the operators
};

struct TemplateTree {
  std::string where;  // names the template in errors
  std::vector<Node> nodes;
  NodeId root = kNoNode;
};

}  // namespace tidekv
