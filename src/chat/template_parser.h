// Reads a chat template: the part of Jinja's language that chat templates use. All else is refused
// here, by name and line.
#pragma once

#include <string>
#include <string_view>

#include "chat/template_node.h"
#include "tidekv/result.h"

namespace tidekv {

// `where` names the template in errors.
Result<TemplateTree> parse_template(std::string_view source, const std::string& where);

}  // namespace tidekv
