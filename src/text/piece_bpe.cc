#include "text/piece_bpe.h"

#include <algorithm>
#include <functional>

#include "text/merge_list.h"
#include "text/space_mark.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

std::uint32_t code_of(std::string_view character) {
  std::uint32_t code = 0;
  for (const char byte : character) {
    code = code << 8U | static_cast<std::uint8_t>(byte);
  }
  return code;
}

bool is_one_character(std::string_view text) {
  return !text.empty() && utf8_step(text).length == text.size();
}

// Where the word that starts at `begin` ends: before the next mark that follows something else.
std::size_t word_end(std::string_view text, std::size_t begin) {
  std::size_t at = begin;
  while (text.substr(at).starts_with(kSpaceMark)) {
    at += kSpaceMark.size();
  }
  return std::min(text.find(kSpaceMark, at), text.size());
}

// Equal scores have equal orders, higher scores lower ones.
std::vector<float> scores_in_order(std::vector<float> scores) {
  std::sort(scores.begin(), scores.end(), std::greater<>{});
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  return scores;
}

}  // namespace

Result<PieceBpe> PieceBpe::build(const SentencePieceSpec& spec, const Vocabulary& vocabulary,
                                 const std::string& file) {
  PieceBpe bpe(vocabulary);
  bpe.ignore_merges_ = spec.base.ignore_merges;
  bpe.index_characters(spec);
  bpe.cuts_at_spaces_ = true;
  for (std::size_t i = 0; i < spec.base.tokens.size(); ++i) {
    const std::string_view token = spec.base.tokens[i];
    bpe.cuts_at_spaces_ = bpe.cuts_at_spaces_ && word_end(token, 0) == token.size();
  }
  std::vector<Merge> merges;
  if (spec.scores.empty()) {
    TIDEKV_ASSIGN(merges, listed_merges(spec.base, vocabulary, file));
  } else {
    merges = bpe.merges_of_scores(spec);
  }
  bpe.merges_ = MergeTable(merges, bpe.num_symbols_);
  if (const auto repeated = bpe.merges_.repeated(); repeated && spec.scores.empty()) {
    return Error{ErrorCode::kBadFile, file + ": " + spec.base.merges_field + "[" +
                                          std::to_string(repeated->second) + "]: repeats merge " +
                                          std::to_string(repeated->first) +
                                          "; expected every pair once"};
  }
  return bpe;
}

void PieceBpe::index_characters(const SentencePieceSpec& spec) {
  num_symbols_ = vocabulary_->size();
  const TextList& tokens = spec.base.tokens;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (spec.types[i] == PieceType::kNormal && is_one_character(tokens[i])) {
      characters_.emplace_back(code_of(tokens[i]), spec.base.token_ids[i]);
    }
  }
  std::vector<std::uint32_t> parts;  // characters of longer pieces
  for (std::size_t i = 0; i < tokens.size() && !spec.scores.empty(); ++i) {
    std::string_view rest = spec.types[i] == PieceType::kNormal ? tokens[i] : std::string_view{};
    while (!rest.empty()) {
      const std::size_t length = utf8_step(rest).length;
      parts.push_back(code_of(rest.substr(0, length)));
      rest.remove_prefix(length);
    }
  }
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  std::sort(characters_.begin(), characters_.end());
  const std::size_t num_tokens = characters_.size();
  for (const std::uint32_t code : parts) {
    const auto end = characters_.begin() + static_cast<std::ptrdiff_t>(num_tokens);
    const auto found = std::lower_bound(characters_.begin(), end, std::pair{code, INT32_MIN});
    if (found == end || found->first != code) {
      characters_.emplace_back(code, static_cast<std::int32_t>(num_symbols_++));
    }
  }
  std::sort(characters_.begin(), characters_.end());
  ascii_.fill(-1);
  for (const auto& [code, symbol] : characters_) {
    if (code < ascii_.size()) {
      ascii_[code] = symbol;
    }
  }
}

std::int32_t PieceBpe::symbol_of_character(std::string_view character) const {
  const std::uint32_t code = code_of(character);
  if (code < ascii_.size()) {
    return ascii_[code];
  }
  const auto found =
      std::lower_bound(characters_.begin(), characters_.end(), std::pair{code, INT32_MIN});
  return found != characters_.end() && found->first == code ? found->second : -1;
}

// Of a character, or of a piece that may come out of text; -1: none.
std::int32_t PieceBpe::symbol_of(std::string_view text, const SentencePieceSpec& spec) const {
  if (is_one_character(text)) {
    return symbol_of_character(text);
  }
  const std::int32_t id = vocabulary_->find(text);
  return id >= 0 && spec.types[static_cast<std::size_t>(id)] == PieceType::kNormal ? id : -1;
}

// Every way to cut a piece into two symbols, ordered by the score of the whole. Ids are places in
// the list of tokens wherever there are scores.
std::vector<Merge> PieceBpe::merges_of_scores(const SentencePieceSpec& spec) const {
  const std::vector<float> order = scores_in_order(spec.scores);
  std::vector<Merge> merges;
  for (std::size_t i = 0; i < spec.base.tokens.size(); ++i) {
    const std::string_view piece = spec.base.tokens[i];
    if (spec.types[i] != PieceType::kNormal || is_one_character(piece)) {
      continue;
    }
    const auto rank =
        std::lower_bound(order.begin(), order.end(), spec.scores[i], std::greater<>{});
    for (std::size_t cut = utf8_step(piece).length; cut < piece.size();
         cut += utf8_step(piece.substr(cut)).length) {
      const std::int32_t left = symbol_of(piece.substr(0, cut), spec);
      const std::int32_t right = left < 0 ? -1 : symbol_of(piece.substr(cut), spec);
      if (right >= 0) {
        merges.push_back({left, right, static_cast<std::int32_t>(i),
                          static_cast<std::uint32_t>(rank - order.begin())});
      }
    }
  }
  return merges;
}

void PieceBpe::cut(std::string_view text, PieceScratch& scratch) const {
  scratch.pieces.clear();
  if (ignore_merges_ && text.size() <= vocabulary_->longest_text()) {
    const std::int32_t id = vocabulary_->find(text);
    if (id >= 0 && !vocabulary_->is_special(id)) {
      scratch.pieces.push_back({text.size(), id});
      return;
    }
  }
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = cuts_at_spaces_ ? word_end(text, begin) : text.size();
    merge_word(text.substr(begin, end - begin), begin, scratch);
    begin = end;
  }
}

// `begin`: of the word, in the whole text.
void PieceBpe::merge_word(std::string_view word, std::size_t begin, PieceScratch& scratch) const {
  std::vector<MergeScratch::Symbol>& symbols = scratch.merges.symbols;
  symbols.clear();
  scratch.begins.clear();
  for (std::size_t at = 0; at < word.size();) {
    const Utf8Step step = utf8_step(word.substr(at));
    const bool valid = step.kind == Utf8Kind::kValid;
    symbols.push_back({.id = valid ? symbol_of_character(word.substr(at, step.length)) : -1});
    scratch.begins.push_back(static_cast<std::uint32_t>(at));
    at += step.length;
  }
  merges_.merge_all(scratch.merges);
  for (std::int32_t i = 0; i >= 0;) {
    const MergeScratch::Symbol& symbol = symbols[static_cast<std::size_t>(i)];
    const bool is_token = symbol.id < vocabulary_->size();
    i = symbol.next;
    const std::size_t end =
        i < 0 ? word.size() : std::size_t{scratch.begins[static_cast<std::size_t>(i)]};
    scratch.pieces.push_back({begin + end, is_token ? symbol.id : -1});
  }
}

}  // namespace tidekv
