#include "needle_task.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <utility>

#include "base/file.h"

namespace tidekv::needle {
namespace {

constexpr std::array<const char*, 4> kFixedSentences = {
    "Rain fell on the quiet hills.", "The river kept its slow pace.",
    "A lamp burned in the window.", "Nothing else happened that day."};
constexpr std::int64_t kRoomForJoins = 13;  // BOS, and tokens that merge differently at joins

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  // Uniform in [low, high]; the remainder's bias is below 2^-40 for the small ranges used here.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto span = static_cast<std::uint64_t>(high - low + 1);
    return low + static_cast<std::int64_t>(engine_() % span);
  }
  const std::string& one_of(const std::vector<std::string>& words) {
    return words[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(words.size()) - 1))];
  }

 private:
  std::mt19937_64 engine_;
};

struct Fact {
  std::string key;
  std::string value;
  std::string sentence() const { return " The secret number of " + key + " is " + value + "."; }
};

class PromptMaker {
 public:
  PromptMaker(Task task, std::uint64_t seed, const Words& words, const CountTokens& count_tokens)
      : task_(task), random_(seed), words_(&words), count_tokens_(&count_tokens) {}

  Result<Prompt> make(std::int64_t max_tokens) {
    std::vector<Fact> facts;
    while (facts.size() < (task_ == Task::kSingle ? 1U : 4U)) {
      facts.push_back(fact_with_key_not_in(facts));
    }
    const Fact asked = facts[static_cast<std::size_t>(
        random_.between(0, static_cast<std::int64_t>(facts.size()) - 1))];
    const std::string question = "\nQuestion: What is the secret number of " + asked.key +
                                 "?\nAnswer: The secret number of " + asked.key + " is";
    std::int64_t room = max_tokens - kRoomForJoins - (*count_tokens_)(question);
    for (const Fact& fact : facts) {
      room -= (*count_tokens_)(fact.sentence());
    }
    if (room < 0) {
      return Error{ErrorCode::kInvalidArgument,
                   "the facts and the question alone need " + std::to_string(max_tokens - room) +
                       " tokens; " + std::to_string(max_tokens) + " were asked for"};
    }
    std::vector<std::string> haystack = fill(room, facts);
    for (const Fact& fact : facts) {
      const auto at = random_.between(0, static_cast<std::int64_t>(haystack.size()));
      haystack.insert(haystack.begin() + at, fact.sentence());
    }
    Prompt prompt;
    for (const std::string& sentence : haystack) {
      prompt.text += sentence;
    }
    prompt.text += question;
    prompt.answer = " " + asked.value + ".";
    return prompt;
  }

 private:
  Fact random_fact() {
    return {random_.one_of(words_->adjectives) + "-" + random_.one_of(words_->nouns),
            std::to_string(random_.between(1000000, 9999999))};
  }

  Fact fact_with_key_not_in(const std::vector<Fact>& taken) {
    for (;;) {
      Fact fact = random_fact();
      if (std::none_of(taken.begin(), taken.end(),
                       [&](const Fact& other) { return other.key == fact.key; })) {
        return fact;
      }
    }
  }

  std::string random_sentence() {
    std::string sentence;
    for (std::int64_t left = random_.between(6, 14); left > 0; --left) {
      sentence += (sentence.empty() ? "" : " ") + random_.one_of(words_->fillers);
    }
    if (sentence[0] >= 'a' && sentence[0] <= 'z') {
      sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
    }
    return sentence + ".";
  }

  // Sentences that together take at most `room` tokens.
  std::vector<std::string> fill(std::int64_t room, const std::vector<Fact>& facts) {
    const bool fixed = random_.between(0, 1) == 0;
    std::vector<std::string> haystack;
    for (;;) {
      const std::string sentence =
          task_ == Task::kNeedles
              ? fact_with_key_not_in(facts).sentence()
              : " " + (fixed ? kFixedSentences[haystack.size() % kFixedSentences.size()]
                             : random_sentence());
      room -= (*count_tokens_)(sentence);
      if (room < 0) {
        return haystack;
      }
      haystack.push_back(sentence);
    }
  }

  Task task_;
  Random random_;
  const Words* words_;
  const CountTokens* count_tokens_;
};

Result<std::vector<std::string>> read_word_list(const std::string& folder,
                                                const std::string& name) {
  constexpr std::int64_t kMaxBytes = 1 << 20;
  TIDEKV_ASSIGN(const std::string text, read_small_file(join_path(folder, name), kMaxBytes));
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) {
    words.push_back(std::move(word));
  }
  if (words.empty()) {
    return Error{ErrorCode::kBadFile, join_path(folder, name) + ": no words in it"};
  }
  return words;
}

}  // namespace

Result<Task> task_named(std::string_view name) {
  if (name == "single") {
    return Task::kSingle;
  }
  if (name == "multikey") {
    return Task::kMultikey;
  }
  if (name == "needles") {
    return Task::kNeedles;
  }
  return Error{ErrorCode::kInvalidArgument,
               "--task '" + std::string(name) + "': expected single, multikey or needles"};
}

Result<Words> read_words(const std::string& folder) {
  Words words;
  TIDEKV_ASSIGN(words.adjectives, read_word_list(folder, "words_adj.txt"));
  TIDEKV_ASSIGN(words.nouns, read_word_list(folder, "words_noun.txt"));
  TIDEKV_ASSIGN(words.fillers, read_word_list(folder, "words_fill.txt"));
  return words;
}

Result<Prompt> make_prompt(Task task, std::int64_t max_tokens, std::uint64_t seed,
                           const Words& words, const CountTokens& count_tokens) {
  return PromptMaker(task, seed, words, count_tokens).make(max_tokens);
}

bool is_right(std::string_view generated, std::string_view answer) {
  const auto number = [](std::string_view text) {
    text = text.substr(0, text.find('.'));
    const std::size_t begin = text.find_first_not_of(' ');
    return begin == std::string_view::npos ? std::string_view() : text.substr(begin);
  };
  return generated.find('.') != std::string_view::npos && number(generated) == number(answer);
}

}  // namespace tidekv::needle
