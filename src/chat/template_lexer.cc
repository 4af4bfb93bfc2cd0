#include "chat/template_lexer.h"

#include <algorithm>
#include <utility>

#include "chat/template_literals.h"
#include "chat/template_text.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

constexpr std::size_t kMaxSourceBytes = 256U << 10U;  // real templates have up to 30 KB

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Line ends become \n, and one at the end is dropped.
std::string normalized(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      out += '\n';
    }
  }
  if (!out.empty() && out.back() == '\n') {
    out.pop_back();
  }
  return out;
}

class Lexer {
 public:
  Lexer(std::string source, const std::string& where)
      : source_(std::move(source)), rest_(source_), where_(where) {}

  Result<std::vector<Token>> run() {
    while (at_ < rest_.size()) {
      TIDEKV_TRY(read_data());
    }
    emit(TokenKind::kEnd);
    return std::move(tokens_);
  }

 private:
  Error bad(const std::string& what, ErrorCode code = ErrorCode::kBadFile) const {
    return Error{code, where_ + ": line " + std::to_string(line_) + ": " + what};
  }
  Token& emit(TokenKind kind, std::string text = "") {
    return tokens_.emplace_back(Token{.kind = kind, .line = line_, .text = std::move(text)});
  }
  bool starts(std::string_view what) const { return rest_.substr(at_).starts_with(what); }
  void advance(std::size_t bytes) {
    const std::string_view passed = rest_.substr(at_, bytes);
    line_ += static_cast<std::int32_t>(std::count(passed.begin(), passed.end(), '\n'));
    at_ += passed.size();
    if (!passed.empty()) {
      line_starting_ = passed.back() == '\n';
    }
  }
  void skip_space() { advance(python_space_at_start(rest_.substr(at_))); }

  // The text up to the next tag, and that tag.
  Status read_data() {
    const std::size_t tag = next_tag();
    const std::string_view data = rest_.substr(at_, tag - at_);
    if (tag == rest_.size()) {
      emit(TokenKind::kData, std::string(data));
      at_ = tag;
      return Ok{};
    }
    const char kind = rest_[tag + 1];
    const char sign = tag + 2 < rest_.size() ? rest_[tag + 2] : '\0';
    const bool signed_tag = sign == '-' || sign == '+';
    emit_data(data, signed_tag ? sign : '\0', kind != '{');
    advance(data.size() + (signed_tag ? 3 : 2));
    if (kind == '#') {
      return skip_comment();
    }
    if (kind == '%' && enter_raw()) {
      return read_raw();
    }
    emit(kind == '%' ? TokenKind::kBlockBegin : TokenKind::kOutputBegin);
    return read_tag(kind == '%');
  }

  std::size_t next_tag() const {
    for (std::size_t at = rest_.find('{', at_); at != std::string_view::npos;
         at = rest_.find('{', at + 1)) {
      if (at + 1 < rest_.size() &&
          std::string_view("#%{").find(rest_[at + 1]) != std::string_view::npos) {
        return at;
      }
    }
    return rest_.size();
  }

  // `sign`: that of the tag behind; `strips_line`: white space between the start of the tag's line
  // and the tag goes.
  void emit_data(std::string_view data, char sign, bool strips_line) {
    if (sign == '-') {
      data.remove_suffix(python_space_at_end(data));
    } else if (sign != '+' && strips_line) {
      const std::size_t newline = data.rfind('\n');
      const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
      if ((begin > 0 || line_starting_) &&
          python_space_at_start(data.substr(begin)) == data.size() - begin) {
        data = data.substr(0, begin);
      }
    }
    if (!data.empty()) {
      emit(TokenKind::kData, std::string(data));
    }
  }

  // At a tag's end: passes it and the white space that goes with it.
  bool pass_end(std::string_view end, bool trims_newline) {
    const bool minus = rest_.substr(at_).starts_with('-');
    const bool plus = trims_newline && rest_.substr(at_).starts_with('+');
    if (!rest_.substr(at_ + (minus || plus ? 1 : 0)).starts_with(end)) {
      return false;
    }
    advance(end.size() + (minus || plus ? 1 : 0));
    if (minus) {
      skip_space();
    } else if (!plus && trims_newline && starts("\n")) {
      advance(1);
    }
    return true;
  }

  Status skip_comment() {
    const std::int32_t first_line = line_;
    const std::size_t end = rest_.find("#}", at_);
    if (end == std::string_view::npos) {
      line_ = first_line;
      return bad("a comment is not closed; expected '#}'");
    }
    const bool sign = end > at_ && (rest_[end - 1] == '-' || rest_[end - 1] == '+');
    advance(end - at_ - (sign ? 1 : 0));
    pass_end("#}", true);
    return Ok{};
  }

  // Behind "{%" and its sign: whether the tag is "raw", which then is passed.
  bool enter_raw() {
    const std::size_t begin = at_ + python_space_at_start(rest_.substr(at_));
    if (!rest_.substr(begin).starts_with("raw")) {
      return false;
    }
    const std::size_t end = begin + 3 + python_space_at_start(rest_.substr(begin + 3));
    if (!rest_.substr(end).starts_with("%}") && !rest_.substr(end).starts_with("-%}")) {
      return false;
    }
    advance(end - at_);
    pass_end("%}", false);
    return true;
  }

  Status read_raw() {
    const std::int32_t first_line = line_;
    for (std::size_t tag = rest_.find("{%", at_); tag != std::string_view::npos;
         tag = rest_.find("{%", tag + 2)) {
      const char sign = tag + 2 < rest_.size() ? rest_[tag + 2] : '\0';
      const std::size_t name = tag + (sign == '-' || sign == '+' ? 3 : 2);
      const std::size_t begin = name + python_space_at_start(rest_.substr(name));
      if (!rest_.substr(begin).starts_with("endraw")) {
        continue;
      }
      emit_data(rest_.substr(at_, tag - at_), sign, true);
      advance(begin + 6 - at_);
      skip_space();
      if (!pass_end("%}", true)) {
        return bad("'endraw' takes nothing behind it; expected '%}'");
      }
      return Ok{};
    }
    line_ = first_line;
    return bad("a raw block is not closed; expected '{% endraw %}'");
  }

  // The tokens inside {% ... %} or {{ ... }}.
  Status read_tag(bool block) {
    const std::int32_t first_line = line_;
    std::string open;  // the brackets that are open
    while (at_ < rest_.size()) {
      skip_space();
      if (open.empty() && pass_end(block ? "%}" : "}}", block)) {
        emit(block ? TokenKind::kBlockEnd : TokenKind::kOutputEnd);
        return Ok{};
      }
      if (at_ < rest_.size()) {
        TIDEKV_TRY(read_token(open));
      }
    }
    line_ = first_line;
    return bad(std::string("a tag is not closed; expected '") + (block ? "%}'" : "}}'"));
  }

  Status read_token(std::string& open) {
    const char c = rest_[at_];
    if (is_name_start(c)) {
      std::size_t end = at_ + 1;
      while (end < rest_.size() && (is_name_start(rest_[end]) || is_digit(rest_[end]))) {
        ++end;
      }
      emit(TokenKind::kName, std::string(rest_.substr(at_, end - at_)));
      advance(end - at_);
      return Ok{};
    }
    if (is_digit(c)) {
      Token token{.line = line_};
      auto length = read_number_literal(rest_.substr(at_), at_ > 0 && rest_[at_ - 1] == '.', token);
      if (!length.ok()) {
        return bad(length.error().message);
      }
      tokens_.push_back(std::move(token));
      advance(length.value());
      return Ok{};
    }
    return c == '\'' || c == '"' ? read_string(c) : read_operator(open);
  }

  Status read_string(char quote) {
    std::size_t end = at_ + 1;
    while (end < rest_.size() && rest_[end] != quote) {
      end += rest_[end] == '\\' ? 2 : 1;
    }
    if (end >= rest_.size()) {
      return bad("a string is not closed");
    }
    auto text = decode_string_literal(rest_.substr(at_ + 1, end - at_ - 1));
    if (!text.ok()) {
      return bad(text.error().message);
    }
    emit(TokenKind::kText, std::move(text).value());
    advance(end + 1 - at_);
    return Ok{};
  }

  Status read_operator(std::string& open) {
    constexpr std::string_view kSingle = "+-/*%~[](){}><=.:|,;";
    constexpr std::string_view kOpening = "([{";
    constexpr std::string_view kClosing = ")]}";
    for (const std::string_view pair : {"//", "**", "==", "!=", ">=", "<="}) {
      if (starts(pair)) {
        emit(TokenKind::kOperator, std::string(pair));
        advance(2);
        return Ok{};
      }
    }
    const char c = rest_[at_];
    const std::string shown =
        "'" + printable(rest_.substr(at_, first_character(rest_.substr(at_)).length)) + "'";
    if (kSingle.find(c) == std::string_view::npos) {
      return bad("unexpected character " + shown);
    }
    if (kOpening.find(c) != std::string_view::npos) {
      open += c;
    } else if (const std::size_t i = kClosing.find(c); i != std::string_view::npos) {
      if (open.empty() || open.back() != kOpening[i]) {
        return bad("unexpected " + shown);
      }
      open.pop_back();
    }
    emit(TokenKind::kOperator, std::string(1, c));
    advance(1);
    return Ok{};
  }

  std::string source_;
  std::string_view rest_;  // all of source_
  const std::string& where_;
  std::size_t at_ = 0;
  std::int32_t line_ = 1;
  bool line_starting_ = true;  // what was passed last ended a line
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> lex_template(std::string_view source, const std::string& where) {
  if (source.size() > kMaxSourceBytes) {
    return Error{ErrorCode::kUnsupported,
                 where + ": a chat template of " + std::to_string(source.size()) +
                     " bytes; expected at most " + std::to_string(kMaxSourceBytes)};
  }
  const std::size_t valid = valid_utf8_prefix(source);
  if (valid < source.size() || source.find('\0') != std::string_view::npos) {
    return Error{ErrorCode::kBadFile,
                 where + ": byte " + std::to_string(std::min(valid, source.find('\0'))) +
                     " of the chat template is no text; expected UTF-8 without zero bytes"};
  }
  return Lexer(normalized(source), where).run();
}

}  // namespace tidekv
