#include "text/piece_unigram.h"

#include <algorithm>
#include <limits>

#include "text/utf8.h"

namespace tidekv {
namespace {

constexpr float kUnknownPenalty = 10.0F;  // an unknown character scores this below the lowest piece
constexpr float kUserDefinedPenalty = 0.1F;

}  // namespace

PieceUnigram::PieceUnigram(const SentencePieceSpec& spec) : scores_(spec.scores) {
  lowest_ = std::numeric_limits<float>::max();
  highest_ = std::numeric_limits<float>::lowest();
  user_defined_.resize(spec.types.size());
  std::vector<PieceTrie::Entry> entries;
  for (std::size_t i = 0; i < spec.base.tokens.size(); ++i) {
    const bool normal = spec.types[i] == PieceType::kNormal;
    user_defined_[i] = spec.types[i] == PieceType::kUserDefined;
    if (normal) {
      lowest_ = std::min(lowest_, scores_[i]);
      highest_ = std::max(highest_, scores_[i]);
    }
    if (normal || user_defined_[i]) {
      entries.push_back({spec.base.tokens[i], static_cast<std::int32_t>(i)});
    }
  }
  trie_ = PieceTrie(std::move(entries));
}

// Forward over the text: the best way to get to each place. Sums are kept and compared in single
// precision, as SentencePiece does it, so that near ties fall alike.
void PieceUnigram::cut(std::string_view text, PieceScratch& scratch) const {
  std::vector<PieceScratch::Best>& best = scratch.best;
  best.assign(text.size() + 1, {});
  const float unknown_score = lowest_ - kUnknownPenalty;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t character = utf8_step(text.substr(at)).length;
    const float so_far = best[at].score;
    bool has_single = false;
    const auto offer = [&](std::size_t length, std::int32_t id, float score) {
      PieceScratch::Best& end = best[at + length];
      if (!end.reached || score > end.score) {
        end = {score, id, static_cast<std::uint32_t>(at), true};
      }
    };
    trie_.for_each_prefix(text.substr(at), [&](std::size_t length, std::int32_t id) {
      const auto index = static_cast<std::size_t>(id);
      const float score = user_defined_[index]
                              ? static_cast<float>(length) * highest_ - kUserDefinedPenalty
                              : scores_[index];
      offer(length, id, score + so_far);
      has_single = has_single || length == character;
    });
    if (!has_single) {
      offer(character, -1, unknown_score + so_far);
    }
    at += character;
  }
  scratch.pieces.clear();
  for (std::size_t end = text.size(); end > 0; end = best[end].begin) {
    scratch.pieces.push_back({end, best[end].id});
  }
  std::reverse(scratch.pieces.begin(), scratch.pieces.end());
}

}  // namespace tidekv
