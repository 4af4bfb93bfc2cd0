#include "text/piece_normalizer.h"

#include <algorithm>

#include "text/space_mark.h"
#include "text/utf8.h"

namespace tidekv {
namespace {

constexpr std::size_t kSizeBytes = 4;
constexpr std::size_t kUnitBytes = 4;
// More than any rule of Unicode's normal forms has on either side. They bound what a hostile map
// costs: the time of a look-up, and how many times longer than the text its result can be.
constexpr std::size_t kMaxKeyBytes = 128;
constexpr std::size_t kMaxResultBytes = 128;

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = kUnitBytes; i > 0; --i) {
    value = value << 8U | static_cast<std::uint8_t>(bytes[i - 1]);
  }
  return value;
}

// The fields of a unit of the trie (a darts-clone double array).
bool has_leaf(std::uint32_t unit) { return (unit >> 8U & 1U) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & 0x7FFFFFFFU; }
std::uint32_t label_of(std::uint32_t unit) { return unit & 0x800000FFU; }
std::uint32_t offset_of(std::uint32_t unit) { return unit >> 10U << ((unit & 0x200U) >> 6U); }

}  // namespace

Result<PieceNormalizer> PieceNormalizer::build(const SentencePieceSpec& spec,
                                               const std::string& file) {
  PieceNormalizer result;
  result.prefix_unless_space_ = spec.base.prefix_unless_space;
  result.remove_extra_whitespace_ = spec.remove_extra_whitespace;
  if (!spec.charsmap.empty()) {
    TIDEKV_TRY(result.read_charsmap(spec.charsmap, file + ": " + spec.charsmap_field));
  }
  return result;
}

// Size of the trie in bytes, the trie, the texts.
Status PieceNormalizer::read_charsmap(std::string_view charsmap, const std::string& where) {
  const std::size_t trie_bytes = charsmap.size() < kSizeBytes ? 0 : little_endian(charsmap);
  if (trie_bytes == 0 || trie_bytes % kUnitBytes != 0 ||
      trie_bytes > charsmap.size() - kSizeBytes || charsmap.back() != '\0') {
    return Error{ErrorCode::kBadFile,
                 where + " has " + std::to_string(charsmap.size()) + " bytes, of which " +
                     std::to_string(trie_bytes) +
                     " should be a trie; expected its size in 4 bytes, the trie, and texts that "
                     "each end in a zero byte"};
  }
  charsmap.remove_prefix(kSizeBytes);
  for (std::size_t at = 0; at < trie_bytes; at += kUnitBytes) {
    units_.push_back(little_endian(charsmap.substr(at)));
  }
  results_ = charsmap.substr(trie_bytes);
  for (std::size_t begin = 0; begin < results_.size();) {
    const std::size_t end = results_.find('\0', begin);  // the last byte is one
    if (end - begin > kMaxResultBytes) {
      return Error{ErrorCode::kBadFile,
                   where + " maps to a text of " + std::to_string(end - begin) +
                       " bytes; expected at most " + std::to_string(kMaxResultBytes)};
    }
    begin = end + 1;
  }
  return Ok{};
}

// The longest start that the map knows, else one character. Every index comes from the file, so
// each is checked: one that is out of range ends the search.
PieceNormalizer::Step PieceNormalizer::step(std::string_view text) const {
  const std::size_t character = utf8_step(text).length;
  Step found{character, text.substr(0, character)};
  if (units_.empty()) {
    return found;
  }
  std::size_t node = offset_of(units_[0]);
  for (std::size_t i = 0; i < std::min(text.size(), kMaxKeyBytes); ++i) {
    const auto byte = static_cast<std::uint8_t>(text[i]);
    node ^= byte;
    if (node >= units_.size() || label_of(units_[node]) != byte) {
      break;
    }
    const std::uint32_t unit = units_[node];
    node ^= offset_of(unit);
    if (!has_leaf(unit)) {
      continue;
    }
    if (node >= units_.size() || value_of(units_[node]) >= results_.size()) {
      break;
    }
    const std::string_view result = std::string_view{results_}.substr(value_of(units_[node]));
    found = {i + 1, result.substr(0, result.find('\0'))};
  }
  return found;
}

std::string PieceNormalizer::normalize(std::string_view text, bool prefixed) const {
  std::string out;
  while (remove_extra_whitespace_ && !text.empty() && step(text).result == " ") {
    text.remove_prefix(step(text).length);
  }
  if (text.empty()) {
    return out;
  }
  out.reserve(text.size() + text.size() / 2);
  const bool has_prefix = text.front() == ' ' || text.starts_with(kSpaceMark);
  if (prefixed && !(prefix_unless_space_ && has_prefix)) {
    out += kSpaceMark;
  }
  bool after_space = remove_extra_whitespace_;
  while (!text.empty()) {
    Step next = step(text);
    text.remove_prefix(next.length);
    while (after_space && next.result.starts_with(' ')) {
      next.result.remove_prefix(1);
    }
    if (next.result.empty()) {
      continue;
    }
    for (const char byte : next.result) {
      if (byte == ' ') {
        out += kSpaceMark;
      } else {
        out += byte;
      }
    }
    after_space = remove_extra_whitespace_ && next.result.ends_with(' ');
  }
  while (remove_extra_whitespace_ && out.ends_with(kSpaceMark)) {
    out.resize(out.size() - kSpaceMark.size());
  }
  return out;
}

}  // namespace tidekv
