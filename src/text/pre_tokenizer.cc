#include "text/pre_tokenizer.h"

#include "text/utf8.h"

namespace tidekv {
namespace {

// Bytes at the start of `text` up to the next valid character.
std::size_t invalid_prefix(std::string_view text) {
  std::size_t done = 0;
  while (done < text.size()) {
    const Utf8Step step = utf8_step(text.substr(done));
    if (step.kind == Utf8Kind::kValid) {
      break;
    }
    done += step.length;
  }
  return done;
}

}  // namespace

Result<PreTokenizer> PreTokenizer::build(const std::vector<PreTokenizerStep>& steps) {
  PreTokenizer result;
  for (const PreTokenizerStep& step : steps) {
    Step built{.kind = step.kind, .behavior = step.behavior, .invert = step.invert, .pattern = {}};
    if (step.kind == PreTokenizerStep::Kind::kSplit) {
      TIDEKV_ASSIGN(built.pattern, SplitPattern::compile(step.pattern, step.field));
    }
    result.steps_.push_back(std::move(built));
  }
  return result;
}

Status PreTokenizer::split(std::string_view text, MatchScratch& scratch, Pieces& pieces) const {
  pieces.list.clear();
  pieces.texts.clear();
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    if (valid > 0) {
      TIDEKV_TRY(split_valid(text.substr(0, valid), scratch, pieces));
      text.remove_prefix(valid);
    }
    const std::size_t invalid = invalid_prefix(text);
    if (invalid > 0) {
      pieces.list.push_back(text.substr(0, invalid));
      text.remove_prefix(invalid);
    }
  }
  return Ok{};
}

Status PreTokenizer::split_valid(std::string_view text, MatchScratch& scratch,
                                 Pieces& pieces) const {
  std::vector<std::string_view> list = {text};
  std::vector<std::string_view> next;
  for (const Step& step : steps_) {
    if (step.kind == PreTokenizerStep::Kind::kPrefixSpace) {
      put_spaces(list, pieces.texts);
      continue;
    }
    next.clear();
    for (const std::string_view piece : list) {
      TIDEKV_TRY(cut(step, piece, scratch, next));
    }
    list.swap(next);
  }
  pieces.list.insert(pieces.list.end(), list.begin(), list.end());
  return Ok{};
}

Status PreTokenizer::cut(const Step& step, std::string_view piece, MatchScratch& scratch,
                         std::vector<std::string_view>& out) {
  const bool keep_all = step.behavior == SplitBehavior::kIsolated;
  const bool keep_matches = keep_all || step.invert;
  const bool keep_between = keep_all || !step.invert;
  std::size_t done = 0;
  while (done < piece.size()) {
    TIDEKV_ASSIGN(const std::optional<SplitPattern::Match> match,
                  step.pattern->find(piece, done, scratch));
    const std::size_t begin = match ? match->begin : piece.size();
    if (begin > done && keep_between) {
      out.push_back(piece.substr(done, begin - done));
    }
    if (!match) {
      break;
    }
    if (keep_matches) {
      out.push_back(piece.substr(begin, match->end - begin));
    }
    done = match->end;
  }
  return Ok{};
}

// A space before every piece that does not start with one.
void PreTokenizer::put_spaces(std::vector<std::string_view>& list, std::deque<std::string>& texts) {
  std::string text;
  std::vector<std::size_t> ends;
  for (const std::string_view piece : list) {
    if (!piece.starts_with(' ')) {
      text += ' ';
    }
    text += piece;
    ends.push_back(text.size());
  }
  texts.push_back(std::move(text));
  std::size_t begin = 0;
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i] = std::string_view{texts.back()}.substr(begin, ends[i] - begin);
    begin = ends[i];
  }
}

}  // namespace tidekv
