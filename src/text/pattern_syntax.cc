#include "text/pattern_syntax.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <vector>

#include "text/utf8.h"

namespace tidekv {
namespace {

constexpr std::size_t kMaxPatternBytes = 4096;
constexpr std::size_t kMaxDepth = 32;
constexpr int kMaxRepeat = 255;       // also the largest weight a callout can carry
constexpr int kItemsPerCallout = 16;  // single characters in a row that are not counted

constexpr std::array<std::string_view, 37> kCategories = {
    "C",  "Cc", "Cf", "Cn", "Co", "Cs", "L",  "Ll", "Lm", "Lo", "Lt", "Lu", "M",
    "Mc", "Me", "Mn", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Pe", "Pf", "Pi",
    "Po", "Ps", "S",  "Sc", "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs"};

constexpr std::array<std::string_view, 12> kScripts = {
    "Arabic", "Armenian", "Cyrillic", "Devanagari", "Greek", "Han",
    "Hangul", "Hebrew",   "Hiragana", "Katakana",   "Latin", "Thai"};

constexpr std::array<std::string_view, 7> kGroups = {"(?:",  "(?i:", "(?=", "(?!",
                                                     "(?<=", "(?<!", "(?>"};

// Letters that Oniguruma, ignoring case, also matches as one character (U+00DF for "ss"); PCRE2
// does not.
constexpr std::array<std::string_view, 5> kFoldedPairs = {"ff", "fi", "fl", "ss", "st"};

template <std::size_t n>
bool one_of(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_ascii(char c) { return static_cast<std::uint8_t>(c) < 0x80; }

std::string hex_escape(unsigned code) {
  std::array<char, 8> digits{};
  char* end = std::to_chars(digits.data(), digits.data() + digits.size(), code, 16).ptr;
  return "\\x{" + std::string(digits.data(), end) + "}";
}

// What an item can be followed by, or stand for.
enum class ItemKind : std::uint8_t {
  kCharacter,  // one given character
  kSet,        // one character of several
  kGroup,
  kNothing,  // no width: cannot be repeated
};

// Reads the pattern from left to right and writes the rewritten one.
class Rewriter {
 public:
  Rewriter(std::string_view pattern, const std::string& field) : in_(pattern), field_(field) {}
  Result<std::string> run();

 private:
  struct Group {
    bool ignores_case = false;
    bool looks_around = false;
  };

  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0';
  }
  bool ignores_case() const { return groups_.back().ignores_case; }
  std::string callout(int weight) const { return "(?C" + std::to_string(weight) + ")"; }
  Error unsupported(const std::string& what) const {
    return Error{ErrorCode::kUnsupported, field_ + ": " + what};
  }
  Error refused(std::size_t begin, const std::string& why) const;

  Status item();
  Result<ItemKind> atom();
  Status open_group();
  Result<ItemKind> close_group();
  Status character_class();
  Status class_member();
  Result<ItemKind> class_character();
  Status copy_character();
  Result<ItemKind> escape();
  Result<ItemKind> property(std::size_t begin);
  Status code_point(std::size_t begin, std::size_t min_digits, std::size_t max_digits, bool braces);
  Status literal();
  Status check_folding(std::size_t begin, const std::string& letters);
  Status quantifier(std::size_t out_begin, ItemKind kind);
  Result<int> counted_repeat(std::string& text);
  int number();

  std::string_view in_;
  const std::string& field_;
  std::size_t at_ = 0;
  std::string out_;
  std::vector<Group> groups_;
  std::string previous_letters_;  // what the item before this one matches, where case is ignored
  int uncounted_items_ = 0;
};

Error Rewriter::refused(std::size_t begin, const std::string& why) const {
  const std::size_t end = std::clamp(at_, begin + 1, std::max(begin + 1, in_.size()));
  return unsupported(quoted_text(in_.substr(begin, end - begin)) + " at byte " +
                     std::to_string(begin) + " of the pattern is not supported: " + why);
}

Result<std::string> Rewriter::run() {
  if (in_.empty() || in_.size() > kMaxPatternBytes) {
    return unsupported("a pattern of " + std::to_string(in_.size()) + " bytes; expected 1 to " +
                       std::to_string(kMaxPatternBytes));
  }
  groups_.push_back({});
  out_ = callout(0);
  while (at_ < in_.size()) {
    TIDEKV_TRY(item());
  }
  if (groups_.size() != 1) {
    return unsupported("the pattern ends inside a group; expected ')'");
  }
  return std::move(out_);
}

// One alternative bar, one opening parenthesis, or one item with its quantifier.
Status Rewriter::item() {
  const char c = peek();
  if (c == '|') {
    ++at_;
    previous_letters_.clear();
    out_ += "|" + callout(0);
    return Ok{};
  }
  if (c == '(') {
    return open_group();
  }
  const std::size_t out_begin = out_.size();
  TIDEKV_ASSIGN(const ItemKind kind, atom());
  return quantifier(out_begin, kind);
}

Result<ItemKind> Rewriter::atom() {
  const char c = peek();
  switch (c) {
    case ')':
      return close_group();
    case '*':
    case '+':
    case '?':
    case '{':
      return refused(at_, "there is nothing before it that it could repeat");
    case '^':
    case '$':
      return refused(at_, "anchors mean different things to different engines");
    case '[':
      TIDEKV_TRY(character_class());
      return ItemKind::kSet;
    case '\\':
      return escape();
    case '.':
      if (ignores_case()) {
        return refused(at_, "only ASCII letters and signs may stand in a (?i: group");
      }
      ++at_;
      out_ += "[^\\n]";
      return ItemKind::kSet;
    default:
      TIDEKV_TRY(literal());
      return ItemKind::kCharacter;
  }
}

Status Rewriter::open_group() {
  const std::size_t begin = at_;
  if (groups_.size() >= kMaxDepth) {
    return refused(begin, "groups are nested deeper than " + std::to_string(kMaxDepth));
  }
  if (ignores_case()) {
    return refused(begin, "a group inside a (?i: group");
  }
  std::string_view opened = "(?:";
  if (peek(1) == '?') {
    const auto* const form = std::find_if(kGroups.begin(), kGroups.end(), [&](std::string_view f) {
      return in_.substr(at_).starts_with(f);
    });
    if (form == kGroups.end()) {
      at_ = std::min(at_ + 4, in_.size());
      return refused(begin, "expected (?:, (?i:, (?=, (?!, (?<=, (?<! or (?>");
    }
    opened = *form;
    at_ += opened.size();
  } else {
    ++at_;
  }
  groups_.push_back({.ignores_case = opened == "(?i:",
                     .looks_around = opened.back() == '=' || opened.back() == '!'});
  previous_letters_.clear();
  out_ += opened;
  out_ += callout(0);
  return Ok{};
}

Result<ItemKind> Rewriter::close_group() {
  if (groups_.size() == 1) {
    return refused(at_, "no group is open here");
  }
  ++at_;
  out_ += ')';
  const bool looks_around = groups_.back().looks_around;
  groups_.pop_back();
  previous_letters_.clear();
  return looks_around ? ItemKind::kNothing : ItemKind::kGroup;
}

Status Rewriter::character_class() {
  const std::size_t begin = at_++;
  out_ += '[';
  if (peek() == '^') {
    if (ignores_case()) {
      return refused(begin, "only ASCII letters and signs may stand in a (?i: group");
    }
    ++at_;
    out_ += '^';
  }
  if (peek() == ']') {
    return refused(begin, "the set is empty; expected \\] for a bracket");
  }
  std::string letters;
  while (at_ < in_.size() && peek() != ']') {
    if (ignores_case()) {
      letters += lower(peek());
    }
    TIDEKV_TRY(class_member());
  }
  if (at_ >= in_.size()) {
    return refused(begin, "the set does not end; expected ']'");
  }
  ++at_;
  out_ += ']';
  return ignores_case() ? check_folding(begin, letters) : Status(Ok{});
}

// One character, range, or \p{..}-like set inside [ ].
Status Rewriter::class_member() {
  const std::size_t begin = at_;
  TIDEKV_ASSIGN(const ItemKind kind, class_character());
  const bool is_range = peek() == '-' && at_ + 1 < in_.size() && peek(1) != ']';
  if (!is_range || in_[begin] == '-') {
    return Ok{};
  }
  ++at_;
  out_ += '-';
  TIDEKV_ASSIGN(const ItemKind end, class_character());
  const bool ambiguous = peek() == '-' && peek(1) != ']';
  if (ignores_case() || kind == ItemKind::kSet || end == ItemKind::kSet || ambiguous) {
    return refused(begin, "expected a range of two single characters, outside (?i: groups");
  }
  return Ok{};
}

Result<ItemKind> Rewriter::class_character() {
  const std::size_t begin = at_;
  const char c = peek();
  if (ignores_case() && !is_letter(c)) {
    return refused(begin, "only ASCII letters may stand in a set in a (?i: group");
  }
  if (c == '\\') {
    return escape();
  }
  if (c == '[' || (c == '&' && peek(1) == '&')) {
    return refused(begin, "sets inside sets; expected \\[ or \\& for the sign itself");
  }
  TIDEKV_TRY(copy_character());
  return ItemKind::kCharacter;
}

Status Rewriter::copy_character() {
  const Utf8Step step = utf8_step(in_.substr(at_));
  if (step.kind != Utf8Kind::kValid) {
    return refused(at_, "the pattern is not valid UTF-8");
  }
  const char c = peek();
  if (is_letter(c) || is_digit(c) || !is_ascii(c)) {
    out_ += in_.substr(at_, step.length);
  } else {
    out_ += hex_escape(static_cast<std::uint8_t>(c));
  }
  at_ += step.length;
  return Ok{};
}

Result<ItemKind> Rewriter::escape() {
  const std::size_t begin = at_;
  const char c = peek(1);
  if (ignores_case()) {
    return refused(begin, "only ASCII letters and signs may stand in a (?i: group");
  }
  at_ = std::min(at_ + 2, in_.size());
  switch (c) {
    case 's':  // the two engines' own \s differ on U+180E
      out_ += "\\p{White_Space}";
      return ItemKind::kSet;
    case 'S':
      out_ += "\\P{White_Space}";
      return ItemKind::kSet;
    case 'd':
    case 'D':
      out_ += c == 'd' ? "\\p{Nd}" : "\\P{Nd}";
      return ItemKind::kSet;
    case 'p':
    case 'P':
      return property(begin);
    case 'n':
    case 'r':
    case 't':
    case 'f':
      out_ += {'\\', c};
      return ItemKind::kCharacter;
    case 'v':
      out_ += hex_escape(0x0B);
      return ItemKind::kCharacter;
    case 'u':
      TIDEKV_TRY(code_point(begin, 4, 4, false));
      return ItemKind::kCharacter;
    case 'x':
      TIDEKV_TRY(code_point(begin, peek() == '{' ? 1 : 2, peek() == '{' ? 6 : 2, peek() == '{'));
      return ItemKind::kCharacter;
    default:
      break;
  }
  if (!is_ascii(c) || is_letter(c) || is_digit(c) || static_cast<std::uint8_t>(c) < 0x20) {
    return refused(begin,
                   "expected \\s, \\d, \\p{..}, \\n, \\r, \\t, \\f, \\v, \\u.., \\x{..} or a sign");
  }
  out_ += {'\\', c};
  return ItemKind::kCharacter;
}

Result<ItemKind> Rewriter::property(std::size_t begin) {
  const std::size_t close = in_.find('}', at_);
  if (peek() != '{' || close == std::string_view::npos) {
    return refused(begin, "expected a name in braces, such as \\p{L}");
  }
  const std::string_view name = in_.substr(at_ + 1, close - at_ - 1);
  at_ = close + 1;
  const bool is_script = one_of(kScripts, name);
  if (!is_script && !one_of(kCategories, name)) {
    return refused(begin, "expected a general category such as L or Nd, or a common script");
  }
  // A bare script name means script extensions to PCRE2, the script itself to Oniguruma.
  out_ += in_.substr(begin, 3);
  out_ += is_script ? "sc:" : "";
  out_ += name;
  out_ += '}';
  return ItemKind::kSet;
}

Status Rewriter::code_point(std::size_t begin, std::size_t min_digits, std::size_t max_digits,
                            bool braces) {
  at_ += braces ? 1 : 0;
  unsigned code = 0;
  const char* first = in_.data() + at_;
  const char* last = first + std::min(max_digits, in_.size() - at_);
  const char* end = std::from_chars(first, last, code, 16).ptr;
  const auto num_digits = static_cast<std::size_t>(end - first);
  at_ += num_digits;
  const bool closed = !braces || peek() == '}';
  at_ += braces && closed ? 1 : 0;
  const bool is_byte = max_digits == 2;  // \x80 and above are raw bytes to Oniguruma
  if (num_digits < min_digits || !closed || code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ||
      (is_byte && code >= 0x80)) {
    return refused(begin, "expected the number of a character, such as \\u00A0 or \\x{1F600}");
  }
  out_ += hex_escape(code);
  return Ok{};
}

Status Rewriter::literal() {
  const std::size_t begin = at_;
  const char c = peek();
  if (ignores_case() && !is_ascii(c)) {
    return refused(begin, "only ASCII letters and signs may stand in a (?i: group");
  }
  TIDEKV_TRY(copy_character());
  return ignores_case() ? check_folding(begin, {lower(c)}) : Status(Ok{});
}

// `letters`: what this item can match, in lower case.
Status Rewriter::check_folding(std::size_t begin, const std::string& letters) {
  for (const char before : previous_letters_) {
    for (const char letter : letters) {
      const std::string pair = {before, letter};
      if (one_of(kFoldedPairs, pair)) {
        return refused(begin, "\"" + pair + "\" in a (?i: group may also match a ligature");
      }
    }
  }
  previous_letters_ = letters;
  return Ok{};
}

Status Rewriter::quantifier(std::size_t out_begin, ItemKind kind) {
  const std::size_t begin = at_;
  const char c = peek();
  if (c != '*' && c != '+' && c != '?' && c != '{') {
    if (++uncounted_items_ == kItemsPerCallout || kind == ItemKind::kGroup) {
      out_ += callout(uncounted_items_);
      uncounted_items_ = 0;
    }
    return Ok{};
  }
  if (ignores_case() || kind == ItemKind::kNothing) {
    return refused(begin, "repeating this");
  }
  std::string text(1, c);
  int least = 0;
  ++at_;
  if (c == '{') {
    TIDEKV_ASSIGN(least, counted_repeat(text));
  }
  const bool is_range = c != '{' || text.find(',') != std::string::npos;
  if ((peek() == '?' && is_range) || (peek() == '+' && c != '{')) {
    text += in_[at_++];
  }
  if (peek() == '?' || peek() == '*' || peek() == '+' || peek() == '{') {
    return refused(begin, "a repeat of a repeat");
  }
  out_ += text;
  out_ += callout(0);
  if (least > 1 && kind != ItemKind::kGroup) {
    out_.insert(out_begin, callout(least));
  }
  return Ok{};
}

// The rest of {n}, {n,} or {n,m}; appends it to `text` and returns n.
Result<int> Rewriter::counted_repeat(std::string& text) {
  const std::size_t begin = at_ - 1;
  const int low = number();
  int high = low;
  text += std::to_string(low);
  if (peek() == ',') {
    ++at_;
    text += ',';
    if (peek() != '}') {
      high = number();
      text += std::to_string(high);
    }
  }
  const bool closed = peek() == '}';
  at_ = std::min(at_ + 1, in_.size());
  if (!closed || low < 0 || high < low || high < 1) {
    return refused(begin,
                   "expected {n}, {n,} or {n,m} with numbers up to " + std::to_string(kMaxRepeat));
  }
  text += '}';
  return low;
}

// Decimal digits as a number up to kMaxRepeat; -1: none, or too large.
int Rewriter::number() {
  int value = is_digit(peek()) ? 0 : -1;
  while (is_digit(peek())) {
    value = value < 0 ? -1 : value * 10 + (in_[at_] - '0');
    value = value > kMaxRepeat ? -1 : value;
    ++at_;
  }
  return value;
}

}  // namespace

Result<std::string> pattern_for_pcre2(std::string_view pattern, const std::string& field) {
  return Rewriter(pattern, field).run();
}

std::string pattern_for_literal(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const bool plain = is_letter(c) || is_digit(c) || !is_ascii(c);
    pattern += plain ? std::string(1, c) : hex_escape(static_cast<std::uint8_t>(c));
  }
  return pattern;
}

}  // namespace tidekv
