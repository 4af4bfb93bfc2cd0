// The demo's promise over many seeds: with 256 kept tokens a layer needle finds almost every fact
// that it finds with all of them. The digits of the answer come from decode alone.
#include <gtest/gtest.h>

#include <string>

#include "needle_task.h"
#include "tidekv/engine.h"

namespace tidekv::testing {
namespace {

constexpr std::uint64_t kSeeds = 20;

class NeedleQuality : public ::testing::Test {
 protected:
  static constexpr std::int64_t kTokens = 8192;

  const std::string folder_ = std::string(TIDEKV_SOURCE_DIR) + "/models/needle";
  const Engine engine_ = Engine::load(folder_, {}).value();
  const needle::Words words_ = needle::read_words(folder_).value();

  needle::Prompt prompt(std::uint64_t seed) const {
    const auto count_tokens = [&](std::string_view text) {
      return static_cast<std::int64_t>(engine_.tokenize(text, {.add_bos = false}).value().size());
    };
    return needle::make_prompt(needle::Task::kSingle, kTokens, seed, words_, count_tokens).value();
  }

  bool answers(const needle::Prompt& prompt, const char* method) const {
    Request request;
    request.prompt = engine_.tokenize(prompt.text, {}).value();
    request.prefill.method = method;
    request.prefill.budget = 256;
    request.prefill.max_new_tokens = 12;
    request.sampling.temperature = 0;
    return needle::is_right(engine_.generate(request, {}).value().text, prompt.answer);
  }
};

TEST_F(NeedleQuality, PromptsAreAsLongAsAskedAndAlwaysTheSame) {
  const needle::Prompt first = prompt(1);
  EXPECT_EQ(first.text, prompt(1).text);
  EXPECT_NE(first.text, prompt(2).text);
  const auto length = static_cast<std::int64_t>(engine_.tokenize(first.text, {}).value().size());
  EXPECT_LE(length, kTokens);
  EXPECT_GE(length, kTokens - 64);
  EXPECT_EQ(first.text.find(first.answer.substr(1)), first.text.rfind(first.answer.substr(1)));
}

TEST_F(NeedleQuality, EvictionKeepsTheAnswersOfTheFullCache) {
  int full = 0;
  int tide = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const needle::Prompt asked = prompt(seed);
    full += answers(asked, "full") ? 1 : 0;
    tide += answers(asked, "tidekv-snap") ? 1 : 0;
  }
  EXPECT_GE(full, 17);
  EXPECT_GE(tide, full - 2);
}

}  // namespace
}  // namespace tidekv::testing
