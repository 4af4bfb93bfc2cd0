#include "text/added_tokens.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "text/utf8.h"

namespace tidekv {
namespace {

// Bounds the work at one position of the text.
constexpr std::size_t kMaxContentBytes = 256;

Error token_error(const std::string& where, const AddedToken& token, const std::string& message) {
  return Error{ErrorCode::kBadFile, where + ": " + quoted_text(token.content) + message};
}

// std::partition_point in steps that grow: its time depends on how near to `begin` the point is.
template <typename Iterator, typename Predicate>
Iterator near_partition_point(Iterator begin, Iterator end, const Predicate& predicate) {
  std::ptrdiff_t step = 1;
  while (step <= end - begin && predicate(begin[step - 1])) {
    begin += step;
    step *= 2;
  }
  return std::partition_point(begin, begin + std::min(step, end - begin), predicate);
}

bool shorter_first(const AddedToken& a, const AddedToken& b) { return a.content < b.content; }

}  // namespace

Result<AddedTokens> AddedTokens::build(const std::vector<AddedToken>& tokens,
                                       const std::string& where) {
  std::vector<AddedToken> sorted = tokens;
  std::sort(sorted.begin(), sorted.end(), shorter_first);
  AddedTokens result;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const AddedToken& token = sorted[i];
    if (token.content.empty() || token.content.size() > kMaxContentBytes) {
      return token_error(where, token,
                         " has " + std::to_string(token.content.size()) + " bytes; expected 1 to " +
                             std::to_string(kMaxContentBytes));
    }
    if (i > 0 && sorted[i - 1].content == token.content) {
      return token_error(where, token, " is there twice; expected every token once");
    }
    Group& group = token.normalized ? result.normalized_ : result.plain_;
    group.starts[static_cast<std::uint8_t>(token.content[0])] = true;
    group.tokens.push_back(token);
  }
  return result;
}

// Narrows the sorted list byte by byte to the tokens that begin as the text at `at` does. What
// falls away stands at the list's ends, and is mostly nothing: hostile tokens share long
// beginnings.
const AddedToken* AddedTokens::longest_at(const Group& group, const Part& part, std::size_t at) {
  const std::string_view text = part.text.substr(at);
  const std::size_t begin_in_whole = part.begin + at;
  const AddedToken* longest = nullptr;
  auto begin = group.tokens.begin();
  auto end = group.tokens.end();
  for (std::size_t len = 0; len < text.size() && begin != end; ++len) {
    const auto byte_of = [len](const AddedToken& token) {
      return len < token.content.size() ? static_cast<std::uint8_t>(token.content[len]) : -1;
    };
    const int wanted = static_cast<std::uint8_t>(text[len]);
    begin = near_partition_point(begin, end,
                                 [&](const AddedToken& token) { return byte_of(token) < wanted; });
    end = near_partition_point(std::make_reverse_iterator(end), std::make_reverse_iterator(begin),
                               [&](const AddedToken& token) { return byte_of(token) > wanted; })
              .base();
    if (begin == end || begin->content.size() != len + 1) {
      continue;
    }
    const bool forbidden = begin->special && overlaps(part.recognition->protected_ranges,
                                                      begin_in_whole, begin_in_whole + len + 1);
    if (!forbidden) {
      longest = &*begin;
    }
  }
  return longest;
}

void AddedTokens::split_by(const Group& group, const Part& part, std::vector<TextSegment>& out) {
  const std::string_view text = part.text;
  std::size_t done = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    const AddedToken* token =
        group.starts[static_cast<std::uint8_t>(text[at])] ? longest_at(group, part, at) : nullptr;
    if (token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + token->content.size();
    at = end;
    if (token->special && !part.recognition->parse_special) {
      continue;
    }
    if (token->lstrip) {
      begin = std::max(done, begin - trailing_white_space(text.substr(0, begin)));
    }
    if (token->rstrip) {
      end += leading_white_space(text.substr(end));
    }
    if (done < begin) {
      out.push_back({text.substr(done, begin - done), -1});
    }
    out.push_back({text.substr(begin, end - begin), token->id});
    done = end;
    at = std::max(at, end);
  }
  if (done < text.size()) {
    out.push_back({text.substr(done), -1});
  }
}

std::vector<TextSegment> AddedTokens::split(std::string_view text,
                                            const Recognition& recognition) const {
  std::vector<TextSegment> first;
  split_by(plain_, {text, 0, &recognition}, first);
  if (normalized_.tokens.empty()) {
    return first;
  }
  std::vector<TextSegment> second;
  for (const TextSegment& segment : first) {
    if (segment.id >= 0) {
      second.push_back(segment);
    } else {
      const auto begin = static_cast<std::size_t>(segment.text.data() - text.data());
      split_by(normalized_, {segment.text, begin, &recognition}, second);
    }
  }
  return second;
}

std::int32_t AddedTokens::find(std::string_view content) const {
  for (const Group* group : {&plain_, &normalized_}) {
    const auto found = std::lower_bound(
        group->tokens.begin(), group->tokens.end(), content,
        [](const AddedToken& token, std::string_view wanted) { return token.content < wanted; });
    if (found != group->tokens.end() && found->content == content) {
      return found->id;
    }
  }
  return -1;
}

bool AddedTokens::takes_white_space() const {
  const auto takes = [](const AddedToken& token) { return token.lstrip || token.rstrip; };
  return std::any_of(plain_.tokens.begin(), plain_.tokens.end(), takes) ||
         std::any_of(normalized_.tokens.begin(), normalized_.tokens.end(), takes);
}

}  // namespace tidekv
