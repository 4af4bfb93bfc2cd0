// Pre-tokeniser patterns: Hugging Face matches them with Oniguruma, this library with PCRE2.
#pragma once

#include <string>
#include <string_view>

#include "tidekv/result.h"

namespace tidekv {

// `pattern` rewritten for PCRE2 (UTF and UCP on) so that it matches the same text. Only constructs
// that are known to mean the same, or can be rewritten to, are accepted; any other is refused by
// name. `field` names the pattern in errors. What remains is the age of the two character tables: a
// letter or digit that Unicode got after the version of this PCRE2 (10.42: Unicode 14) is none.
//
// Callouts are put where work is done: at the start of every alternative and after every repeated
// item. They let SplitPattern count the work of a match and stop it.
Result<std::string> pattern_for_pcre2(std::string_view pattern, const std::string& field);

// A pattern that matches `text` literally.
std::string pattern_for_literal(std::string_view text);

}  // namespace tidekv
