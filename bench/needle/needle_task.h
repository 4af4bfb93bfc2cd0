// Prompts with facts hidden in them, from a seed: the tasks of models/needle/README.md.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tidekv/result.h"

namespace tidekv::needle {

enum class Task : std::uint8_t {
  kSingle,    // one fact among filler
  kMultikey,  // four facts among filler, one asked for
  kNeedles,   // every sentence is a fact
};

Result<Task> task_named(std::string_view name);

struct Prompt {
  std::string text;    // haystack, question, start of the answer; no BOS
  std::string answer;  // " 1234567."
};

// The word lists of models/needle.
struct Words {
  std::vector<std::string> adjectives;
  std::vector<std::string> nouns;
  std::vector<std::string> fillers;
};

Result<Words> read_words(const std::string& folder);

// Tokens of a text without BOS.
using CountTokens = std::function<std::int64_t(std::string_view)>;

// The prompt of a seed: always the same, and at most max_tokens long, BOS included. An error if
// not even the facts and the question fit.
Result<Prompt> make_prompt(Task task, std::int64_t max_tokens, std::uint64_t seed,
                           const Words& words, const CountTokens& count_tokens);

// The text up to its first full stop equals the answer's.
bool is_right(std::string_view generated, std::string_view answer);

}  // namespace tidekv::needle
