#include "text/bpe.h"

#include <algorithm>
#include <functional>

#include "text/byte_alphabet.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

Error merge_error(const std::string& file, std::size_t rank, const std::string& message) {
  return Error{ErrorCode::kBadFile,
               file + ": model.merges[" + std::to_string(rank) + "]: " + message};
}

}  // namespace

Result<Bpe> Bpe::build(const TokenizerSpec& spec, const Vocabulary& vocabulary,
                       const std::string& file) {
  Bpe bpe(vocabulary);
  bpe.ignore_merges_ = spec.ignore_merges;
  TIDEKV_TRY(bpe.read_bytes(file));
  TIDEKV_TRY(bpe.read_merges(spec.merges, file));
  TIDEKV_TRY(bpe.index_pairs(file));
  return bpe;
}

Status Bpe::read_bytes(const std::string& file) {
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::string_view spelling = byte_spelling(static_cast<std::uint8_t>(byte));
    byte_ids_[byte] = vocabulary_->find(spelling);
    if (byte_ids_[byte] < 0) {
      return Error{ErrorCode::kUnsupported,
                   file + ": model.vocab: no token " + quoted_text(spelling) + " for byte " +
                       std::to_string(byte) + "; expected one for each of the 256 bytes"};
    }
  }
  return Ok{};
}

Status Bpe::read_merges(const TextList& merges, const std::string& file) {
  merges_.reserve(merges.size() / 2);
  std::string joined;
  for (std::size_t rank = 0; rank < merges.size() / 2; ++rank) {
    const std::string_view left = merges[2 * rank];
    const std::string_view right = merges[2 * rank + 1];
    joined.assign(left).append(right);
    const Merge merge{vocabulary_->find(left), vocabulary_->find(right), vocabulary_->find(joined)};
    if (left.empty() || right.empty()) {
      return merge_error(file, rank, "one part is empty; expected two tokens");
    }
    for (const auto& [id, text] : {std::pair<std::int32_t, std::string_view>{merge.left, left},
                                   {merge.right, right},
                                   {merge.result, joined}}) {
      if (id < 0) {
        return merge_error(file, rank,
                           quoted_text(text) +
                               " is not in model.vocab; expected both parts "
                               "and the merged token there");
      }
    }
    merges_.push_back(merge);
  }
  return Ok{};
}

// Counting sort by left token, then by right token inside each.
Status Bpe::index_pairs(const std::string& file) {
  pair_begin_.assign(static_cast<std::size_t>(vocabulary_->size()) + 1, 0);
  for (const Merge& merge : merges_) {
    ++pair_begin_[static_cast<std::size_t>(merge.left) + 1];
  }
  for (std::size_t i = 1; i < pair_begin_.size(); ++i) {
    pair_begin_[i] += pair_begin_[i - 1];
  }
  pairs_.resize(merges_.size());
  std::vector<std::uint32_t> next = pair_begin_;
  for (std::size_t rank = 0; rank < merges_.size(); ++rank) {
    pairs_[next[static_cast<std::size_t>(merges_[rank].left)]++] = {
        merges_[rank].right, static_cast<std::uint32_t>(rank)};
  }
  for (std::size_t left = 0; left + 1 < pair_begin_.size(); ++left) {
    const auto begin = pairs_.begin() + pair_begin_[left];
    const auto end = pairs_.begin() + pair_begin_[left + 1];
    std::sort(begin, end, [](const Pair& a, const Pair& b) {
      return a.right != b.right ? a.right < b.right : a.rank < b.rank;
    });
    const auto twice = std::adjacent_find(
        begin, end, [](const Pair& a, const Pair& b) { return a.right == b.right; });
    if (twice != end) {
      return merge_error(
          file, (twice + 1)->rank,
          "repeats merge " + std::to_string(twice->rank) + "; expected every pair once");
    }
  }
  return Ok{};
}

// A special token is never found this way: text that spells one stays text.
bool Bpe::whole_token(std::string_view piece, BpeScratch& scratch,
                      std::vector<std::int32_t>& ids) const {
  if (piece.size() > vocabulary_->longest_text()) {
    return false;
  }
  scratch.spelling_.clear();
  for (const char byte : piece) {
    scratch.spelling_ += byte_spelling(static_cast<std::uint8_t>(byte));
  }
  const std::int32_t id = vocabulary_->find(scratch.spelling_);
  if (id < 0 || vocabulary_->is_special(id)) {
    return false;
  }
  ids.push_back(id);
  return true;
}

// Puts the pair that starts at `position` among the candidates, if there is a merge for it.
void Bpe::offer(BpeScratch& scratch, std::int32_t position, bool heap) const {
  const BpeScratch::Symbol& left = scratch.symbols_[static_cast<std::size_t>(position)];
  if (left.next < 0) {
    return;
  }
  const std::int32_t right = scratch.symbols_[static_cast<std::size_t>(left.next)].id;
  const auto left_id = static_cast<std::size_t>(left.id);
  const auto end = pairs_.begin() + pair_begin_[left_id + 1];
  const auto found =
      std::lower_bound(pairs_.begin() + pair_begin_[left_id], end, right,
                       [](const Pair& pair, std::int32_t id) { return pair.right < id; });
  if (found == end || found->right != right) {
    return;
  }
  scratch.candidates_.push_back(static_cast<std::uint64_t>(found->rank) << 32U |
                                static_cast<std::uint32_t>(position));
  if (heap) {
    std::push_heap(scratch.candidates_.begin(), scratch.candidates_.end(), std::greater<>{});
  }
}

void Bpe::merge_all(BpeScratch& scratch) const {
  std::vector<BpeScratch::Symbol>& symbols = scratch.symbols_;
  std::vector<std::uint64_t>& heap = scratch.candidates_;
  std::make_heap(heap.begin(), heap.end(), std::greater<>{});
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>{});
    const Merge& merge = merges_[heap.back() >> 32U];
    const auto position = static_cast<std::int32_t>(heap.back() & 0xFFFFFFFFU);
    heap.pop_back();
    BpeScratch::Symbol& left = symbols[static_cast<std::size_t>(position)];
    if (left.id != merge.left || left.next < 0) {
      continue;  // this pair is gone: one of its symbols was merged meanwhile
    }
    BpeScratch::Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    if (right.id != merge.right) {
      continue;
    }
    left.id = merge.result;
    left.next = right.next;
    right.id = -1;
    if (right.next >= 0) {
      symbols[static_cast<std::size_t>(right.next)].previous = position;
    }
    if (left.previous >= 0) {
      offer(scratch, left.previous, true);
    }
    offer(scratch, position, true);
  }
}

void Bpe::encode(std::string_view piece, BpeScratch& scratch,
                 std::vector<std::int32_t>& ids) const {
  if (piece.empty() || (ignore_merges_ && whole_token(piece, scratch, ids))) {
    return;
  }
  const auto len = static_cast<std::int32_t>(piece.size());
  scratch.symbols_.resize(piece.size());
  scratch.candidates_.clear();
  for (std::int32_t i = 0; i < len; ++i) {
    const auto at = static_cast<std::size_t>(i);
    scratch.symbols_[at] = {byte_ids_[static_cast<std::uint8_t>(piece[at])], i - 1,
                            i + 1 < len ? i + 1 : -1};
  }
  for (std::int32_t i = 0; i < len; ++i) {
    offer(scratch, i, false);
  }
  merge_all(scratch);
  for (std::int32_t i = 0; i >= 0; i = scratch.symbols_[static_cast<std::size_t>(i)].next) {
    ids.push_back(scratch.symbols_[static_cast<std::size_t>(i)].id);
  }
}

}  // namespace tidekv
