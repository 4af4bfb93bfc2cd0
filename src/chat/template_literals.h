// Literals of the template language.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "chat/template_lexer.h"
#include "tidekv/result.h"

namespace tidekv {

// The text that a string literal stands for; `body` is what lies between its quotes. Errors say
// what is wrong, not where.
Result<std::string> decode_string_literal(std::string_view body);

// The number that `source` starts with (a digit): fills kind and value, gives its length in bytes.
// `after_dot`: a float cannot follow a full stop, as in `row.0.5`.
Result<std::size_t> read_number_literal(std::string_view source, bool after_dot, Token& token);

}  // namespace tidekv
