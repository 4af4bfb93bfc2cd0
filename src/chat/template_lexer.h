// Cuts a chat template into tokens, with Jinja's white space rules as Transformers sets them:
// trim_blocks and lstrip_blocks on, one newline at the end of the template dropped.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tidekv/result.h"

namespace tidekv {

enum class TokenKind : std::uint8_t {
  kData,         // text outside tags
  kOutputBegin,  // {{
  kOutputEnd,    // }}
  kBlockBegin,   // {%
  kBlockEnd,     // %}
  kName,
  kText,  // a string literal, decoded
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::int32_t line = 0;  // from 1
  std::string text = {};  // of kData, kName, kText, kOperator
  std::int64_t integer = 0;
  double number = 0.0;
};

// `where` names the template in errors. The last token is kEnd.
Result<std::vector<Token>> lex_template(std::string_view source, const std::string& where);

}  // namespace tidekv
