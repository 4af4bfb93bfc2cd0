// Where a Hugging Face folder keeps its chat template and the tokens that templates print.
#pragma once

#include <string>
#include <string_view>

#include "tidekv/result.h"

namespace tidekv {

struct ChatTemplateSource {
  std::string source;
  std::string where;  // names it in errors: the file, and the field if it stands in one
};

// chat_template.jinja if there is one, else tokenizer_config.json's chat_template: the text, or of
// a list of named ones "default". Neither: an error that says where it looked.
Result<ChatTemplateSource> read_chat_template(const std::string& folder);

// Texts of the special tokens in tokenizer_config.json; empty: the model has none.
struct SpecialTokenTexts {
  std::string bos_token;
  std::string eos_token;
  std::string unk_token;
  std::string pad_token;
};

// Without that file, all are empty.
Result<SpecialTokenTexts> read_special_token_texts(const std::string& folder);

}  // namespace tidekv
