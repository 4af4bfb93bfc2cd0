#include "engine/turn_marks.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_value.h"

namespace tidekv {
namespace {

// Different ones. More than any chat form writes, and a bound on what a hostile one costs.
constexpr std::size_t kMaxMarks = 1024;

using Marks = std::set<std::string_view>;

// What the template wrote before, between and after the messages.
std::vector<std::string_view> template_stretches(const RenderedChat& chat) {
  const std::string_view text = chat.text;
  std::vector<std::string_view> stretches;
  std::size_t begin = 0;
  for (const TextRange& range : chat.user_ranges) {
    stretches.push_back(text.substr(begin, range.begin - begin));
    begin = range.end;
  }
  stretches.push_back(text.substr(begin));
  return stretches;
}

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = std::min(line.find_first_not_of(kBlanks), line.size());
  return line.substr(begin, line.find_last_not_of(kBlanks) + 1 - begin);
}

Status add_mark(std::string_view mark, Marks& marks) {
  marks.insert(mark);
  if (marks.size() <= kMaxMarks) {
    return Ok{};
  }
  return Error{ErrorCode::kBadFile,
               "the chat template writes more than " + std::to_string(kMaxMarks) +
                   " different lines between messages; expected the marks of their turns"};
}

Status add_lines(std::string_view text, Marks& marks) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (const std::string_view line = trimmed(text.substr(0, end)); !line.empty()) {
      TIDEKV_TRY(add_mark(line, marks));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return Ok{};
}

Status add_marks(std::string_view stretch, const Tokenizer& tokenizer, Marks& marks) {
  TIDEKV_ASSIGN(const auto ids,
                tokenizer.encode(stretch, {.add_bos = false, .parse_special = true}));
  bool has_special = false;
  for (const std::int32_t id : ids) {
    const std::string_view token = tokenizer.token_text(id);
    if (tokenizer.is_special(id)) {
      has_special = true;
    } else if (tokenizer.find_special(token) == id) {
      TIDEKV_TRY(add_mark(token, marks));
    }
  }
  return has_special ? Status(Ok{}) : add_lines(stretch, marks);
}

// The messages as they were written, then as the model reads them: what looks different may become
// the same tokens, "[/INST]" in wide letters say.
std::vector<std::string> said_texts(const RenderedChat& chat, const Tokenizer& tokenizer) {
  std::vector<std::string> texts;
  for (const TextRange& range : chat.user_ranges) {
    texts.push_back(chat.text.substr(range.begin, range.end - range.begin));
    if (std::string read = tokenizer.normalized(texts.back()); read != texts.back()) {
      texts.push_back(std::move(read));
    }
  }
  return texts;
}

// Whether one of `texts` holds `mark`. Linear in the texts, whatever the two are made of.
bool is_said(std::string_view mark, const std::vector<std::string>& texts) {
  const std::boyer_moore_searcher searcher(mark.begin(), mark.end());
  return !mark.empty() && std::ranges::any_of(texts, [&](const std::string& said) {
    return said.size() >= mark.size() &&
           std::search(said.begin(), said.end(), searcher) != said.end();
  });
}

}  // namespace

Status check_turn_marks(const RenderedChat& chat, const Tokenizer& tokenizer) {
  Marks marks;
  for (const std::string_view stretch : template_stretches(chat)) {
    TIDEKV_TRY(add_marks(stretch, tokenizer, marks));
  }
  const std::vector<std::string> said = said_texts(chat, tokenizer);
  for (const std::string_view mark : marks) {
    const std::string read = tokenizer.normalized(mark);
    if (is_said(mark, said) || (read != mark && is_said(read, said))) {
      return Error{ErrorCode::kInvalidArgument,
                   "a message holds " + in_quotes(mark) +
                       ", which this model's chat form writes between messages; "
                       "expected messages without it, as the model could not tell the two apart"};
    }
  }
  return Ok{};
}

}  // namespace tidekv
