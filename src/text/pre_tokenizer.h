// Cuts text into the pieces that are merged on their own.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/split_pattern.h"
#include "text/tokenizer_spec.h"
#include "tidekv/result.h"

namespace tidekv {

class PreTokenizer {
 public:
  static Result<PreTokenizer> build(const std::vector<PreTokenizerStep>& steps);

  // One call's pieces, and the text that they point into where a step put spaces in.
  struct Pieces {
    std::vector<std::string_view> list;
    std::deque<std::string> texts;  // a deque: growing it moves no string
  };

  // The pieces of `text`, replacing what was in `pieces`. Patterns see valid UTF-8 only: every
  // stretch of bytes that is not is a piece by itself, and ends the text before it.
  Status split(std::string_view text, MatchScratch& scratch, Pieces& pieces) const;

  std::size_t num_steps() const { return steps_.size(); }

 private:
  struct Step {
    PreTokenizerStep::Kind kind = PreTokenizerStep::Kind::kSplit;
    SplitBehavior behavior = SplitBehavior::kIsolated;
    bool invert = false;
    std::optional<SplitPattern> pattern;
  };

  Status split_valid(std::string_view text, MatchScratch& scratch, Pieces& pieces) const;
  static Status cut(const Step& step, std::string_view piece, MatchScratch& scratch,
                    std::vector<std::string_view>& out);
  static void put_spaces(std::vector<std::string_view>& list, std::deque<std::string>& texts);

  std::vector<Step> steps_;
};

}  // namespace tidekv
