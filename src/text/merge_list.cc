#include "text/merge_list.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "text/utf8.h"

namespace tidekv {
namespace {

Error merge_error(const TokenizerSpec& spec, const std::string& file, std::size_t rank,
                  const std::string& message) {
  return Error{ErrorCode::kBadFile,
               file + ": " + spec.merges_field + "[" + std::to_string(rank) + "]: " + message};
}

bool starts_character(char byte) { return (static_cast<std::uint8_t>(byte) & 0xC0U) != 0x80U; }

}  // namespace

Result<std::vector<Merge>> listed_merges(const TokenizerSpec& spec, const Vocabulary& vocabulary,
                                         const std::string& file) {
  const std::size_t num_merges = spec.merges.size() / 2;
  std::vector<Merge> merges;
  merges.reserve(num_merges);
  std::string joined;
  for (std::size_t rank = 0; rank < num_merges; ++rank) {
    const std::string_view left = spec.merges[2 * rank];
    const std::string_view right = spec.merges[2 * rank + 1];
    if (left.empty() || right.empty()) {
      return merge_error(spec, file, rank, "one part is empty; expected two tokens");
    }
    joined.assign(left).append(right);
    const Merge merge{vocabulary.find(left), vocabulary.find(right), vocabulary.find(joined),
                      static_cast<std::uint32_t>(rank)};
    for (const auto& [id, text] : {std::pair<std::int32_t, std::string_view>{merge.left, left},
                                   {merge.right, right},
                                   {merge.result, joined}}) {
      if (id < 0) {
        return merge_error(spec, file, rank,
                           quoted_text(text) + " is not in " + spec.tokens_field +
                               "; expected both parts and the merged token there");
      }
    }
    merges.push_back(merge);
  }
  return merges;
}

std::vector<Merge> merges_of_ranks(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  std::vector<Merge> merges;
  for (std::size_t i = 0; i < spec.tokens.size(); ++i) {
    const std::string_view token = spec.tokens[i];
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      if (!starts_character(token[cut])) {
        continue;
      }
      const std::int32_t left = vocabulary.find(token.substr(0, cut));
      const std::int32_t right = left < 0 ? -1 : vocabulary.find(token.substr(cut));
      if (right >= 0) {
        merges.push_back({left, right, spec.token_ids[i], 0});
      }
    }
  }
  std::sort(merges.begin(), merges.end(), [](const Merge& a, const Merge& b) {
    return std::tie(a.result, a.left, a.right) < std::tie(b.result, b.left, b.right);
  });
  for (std::size_t i = 0; i < merges.size(); ++i) {
    merges[i].order = static_cast<std::uint32_t>(i);
  }
  return merges;
}

}  // namespace tidekv
