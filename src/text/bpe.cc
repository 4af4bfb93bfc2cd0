#include "text/bpe.h"

#include <algorithm>

#include "text/byte_alphabet.h"
#include "text/merge_list.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

// Bytes that ordinary text has. Real vocabularies lack some of the others, SmolLM2's 21: control
// characters, and leading bytes of characters that nobody uses.
bool is_common(std::size_t byte) {
  const bool control = (byte < ' ' && byte != '\t' && byte != '\n' && byte != '\r') || byte == 0x7F;
  return !control && byte != 0xC0 && byte != 0xC1 && byte <= 0xF0;
}

}  // namespace

Result<Bpe> Bpe::build(const TokenizerSpec& spec, const Vocabulary& vocabulary,
                       const std::string& file) {
  Bpe bpe(vocabulary);
  bpe.ignore_merges_ = spec.ignore_merges;
  TIDEKV_TRY(bpe.read_bytes(spec, file));
  std::vector<Merge> merges;
  if (spec.merge_source == MergeSource::kRanks) {
    merges = merges_of_ranks(spec, vocabulary);
  } else {
    TIDEKV_ASSIGN(merges, listed_merges(spec, vocabulary, file));
  }
  bpe.merges_ = MergeTable(merges, vocabulary.size());
  if (const auto repeated = bpe.merges_.repeated()) {
    return Error{ErrorCode::kBadFile, file + ": " + spec.merges_field + "[" +
                                          std::to_string(repeated->second) + "]: repeats merge " +
                                          std::to_string(repeated->first) +
                                          "; expected every pair once"};
  }
  return bpe;
}

Status Bpe::read_bytes(const TokenizerSpec& spec, const std::string& file) {
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::string_view spelling = byte_spelling(static_cast<std::uint8_t>(byte));
    byte_ids_[byte] = vocabulary_->find(spelling);
    has_all_bytes_ = has_all_bytes_ && byte_ids_[byte] >= 0;
    if (byte_ids_[byte] < 0 && (spec.needs_all_bytes || is_common(byte))) {
      return Error{ErrorCode::kUnsupported, file + ": " + spec.tokens_field + ": no token " +
                                                quoted_text(spelling) + " for byte " +
                                                std::to_string(byte) +
                                                "; expected one for each of the 256 bytes"};
    }
  }
  return Ok{};
}

std::size_t Bpe::count_bytes(std::string_view text) const {
  if (has_all_bytes_) {
    return text.size();
  }
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [this](char byte) {
    return byte_ids_[static_cast<std::uint8_t>(byte)] >= 0;
  }));
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

void Bpe::encode(std::string_view piece, BpeScratch& scratch,
                 std::vector<std::int32_t>& ids) const {
  if (piece.empty() || (ignore_merges_ && whole_token(piece, scratch, ids))) {
    return;
  }
  std::vector<MergeScratch::Symbol>& symbols = scratch.merges_.symbols;
  symbols.clear();
  for (const char byte : piece) {
    const std::int32_t id = byte_ids_[static_cast<std::uint8_t>(byte)];
    if (id >= 0) {
      symbols.push_back({.id = id});
    }
  }
  if (symbols.empty()) {
    return;
  }
  merges_.merge_all(scratch.merges_);
  for (std::int32_t i = 0; i >= 0; i = symbols[static_cast<std::size_t>(i)].next) {
    ids.push_back(symbols[static_cast<std::size_t>(i)].id);
  }
}

}  // namespace tidekv
