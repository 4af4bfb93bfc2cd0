#include "text/bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "text/byte_alphabet.h"

namespace tidekv {
namespace {

// A vocabulary of the 256 bytes and random merges of letters a to d.
TokenizerSpec random_spec(unsigned seed, int num_merges) {
  TokenizerSpec spec;
  std::vector<std::string> tokens;
  const auto add = [&](const std::string& token) {
    spec.tokens.add(token);
    spec.token_ids.push_back(static_cast<std::int32_t>(spec.token_ids.size()));
  };
  for (int byte = 0; byte < 256; ++byte) {
    add(std::string(byte_spelling(static_cast<std::uint8_t>(byte))));
  }
  tokens = {"a", "b", "c", "d"};
  std::mt19937 random(seed);
  std::vector<std::string> seen_pairs;
  while (num_merges > 0) {
    const std::string left = tokens[random() % tokens.size()];
    const std::string right = tokens[random() % tokens.size()];
    std::string pair = left;
    pair.append(" ").append(right);
    if (left.size() + right.size() > 8 ||
        std::find(seen_pairs.begin(), seen_pairs.end(), pair) != seen_pairs.end()) {
      continue;
    }
    seen_pairs.push_back(pair);
    --num_merges;
    spec.merges.add(left);
    spec.merges.add(right);
    if (std::find(tokens.begin(), tokens.end(), left + right) == tokens.end()) {
      tokens.push_back(left + right);
      add(left + right);
    }
  }
  return spec;
}

// The definition: merge the leftmost pair of the best rank until there is none.
std::vector<std::string> merge_naively(const TokenizerSpec& spec, const std::string& word) {
  std::map<std::pair<std::string, std::string>, std::size_t> ranks;
  for (std::size_t rank = 0; rank < spec.merges.size() / 2; ++rank) {
    ranks[{std::string(spec.merges[2 * rank]), std::string(spec.merges[2 * rank + 1])}] = rank;
  }
  std::vector<std::string> symbols;
  for (const char c : word) {
    symbols.emplace_back(1, c);
  }
  for (;;) {
    std::size_t best_rank = ranks.size();
    std::size_t best = 0;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = ranks.find({symbols[i], symbols[i + 1]});
      if (found != ranks.end() && found->second < best_rank) {
        best_rank = found->second;
        best = i;
      }
    }
    if (best_rank == ranks.size()) {
      return symbols;
    }
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, MergesLikeTheDefinition) {
  constexpr unsigned kSeed = 20240607;
  std::mt19937 random(kSeed);
  BpeScratch scratch;
  for (unsigned round = 0; round < 40; ++round) {
    const TokenizerSpec spec = random_spec(kSeed + round, 40);
    auto vocabulary = Vocabulary::build(spec, "f");
    ASSERT_TRUE(vocabulary.ok()) << vocabulary.error().message;
    const auto bpe = Bpe::build(spec, vocabulary.value(), "f");
    ASSERT_TRUE(bpe.ok()) << bpe.error().message;
    for (int word_index = 0; word_index < 50; ++word_index) {
      std::string word;
      for (auto length = 1 + random() % 40; length > 0; --length) {
        word += static_cast<char>('a' + random() % 4);
      }
      std::vector<std::int32_t> ids;
      bpe.value().encode(word, scratch, ids);
      std::vector<std::string> tokens;
      tokens.reserve(ids.size());
      for (const std::int32_t id : ids) {
        tokens.emplace_back(vocabulary.value().text(id));
      }
      ASSERT_EQ(tokens, merge_naively(spec, word)) << word << ", seed " << kSeed + round;
    }
  }
}

TEST(Bpe, EveryByteHasItsOwnSpelling) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto b = static_cast<std::uint8_t>(byte);
    EXPECT_EQ(bytes_of_spelling(byte_spelling(b)), std::string(1, static_cast<char>(b)));
  }
  EXPECT_EQ(byte_spelling(' '), "\xC4\xA0");
  EXPECT_EQ(bytes_of_spelling("a b"), std::nullopt);
  EXPECT_EQ(bytes_of_spelling("\xE2\x82\xAC"), std::nullopt);
}

}  // namespace
}  // namespace tidekv
