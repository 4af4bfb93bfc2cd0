// Against Transformers' apply_chat_template, written by tools/reference/make_chat_golden.py.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "chat/chat_template.h"

namespace tidekv {
namespace {

using nlohmann::json;

const json& golden() {
  static const json kGolden = [] {
    const auto text =
        read_small_file(std::string(TIDEKV_SOURCE_DIR) + "/tests/data/chat_golden.json", 1 << 24);
    return text.ok() ? json::parse(text.value()) : json::object();
  }();
  return kGolden;
}

std::vector<ChatMessage> messages_of(const json& chat) {
  std::vector<ChatMessage> messages;
  for (const json& message : chat) {
    messages.push_back({message["role"], message["content"]});
  }
  return messages;
}

ChatOptions golden_options(bool add_generation_prompt) {
  ChatOptions options;
  options.bos_token = golden()["tokens"]["bos_token"];
  options.eos_token = golden()["tokens"]["eos_token"];
  options.add_generation_prompt = add_generation_prompt;
  std::tm now{};  // 2024-07-26 13:05:09, a Friday
  now.tm_year = 124;
  now.tm_mon = 6;
  now.tm_mday = 26;
  now.tm_hour = 13;
  now.tm_min = 5;
  now.tm_sec = 9;
  now.tm_wday = 5;
  now.tm_yday = 207;
  options.local_time = now;
  return options;
}

Result<RenderedChat> render(const std::string& source, const std::vector<ChatMessage>& messages,
                            const ChatOptions& options) {
  TIDEKV_ASSIGN(const ChatTemplate parsed, ChatTemplate::parse(source, "template"));
  return parsed.render(messages, options);
}

// The same text; or the template's own refusal word by word; or any error where Jinja fails.
void expect_same(const json& wanted, const Result<RenderedChat>& chat) {
  if (wanted.contains("text")) {
    ASSERT_TRUE(chat.ok()) << chat.error().message;
    EXPECT_EQ(chat.value().text, wanted["text"].get<std::string>());
    return;
  }
  ASSERT_FALSE(chat.ok()) << chat.value().text;
  if (wanted.contains("refusal")) {
    EXPECT_EQ(chat.error().code, ErrorCode::kInvalidArgument);
    EXPECT_TRUE(chat.error().message.ends_with(": " + wanted["refusal"].get<std::string>()))
        << chat.error().message;
  }
}

TEST(ChatGolden, TextsEqualTransformersForEveryFamilyAndChat) {
  ASSERT_GE(golden()["templates"].size(), 12U);
  for (const json& family : golden()["templates"]) {
    ASSERT_GE(family["cases"].size(), 30U);
    for (const json& item : family["cases"]) {
      SCOPED_TRACE(family["name"].get<std::string>() + " " + item.dump());
      const std::vector<ChatMessage> messages =
          messages_of(golden()["chats"][item["chat"].get<std::size_t>()]);
      expect_same(item, render(family["template"], messages,
                               golden_options(item["add_generation_prompt"])));
    }
  }
}

TEST(ChatGolden, EveryFeatureOfTheLanguageDoesWhatJinjaDoes) {
  ASSERT_GE(golden()["language"].size(), 250U);
  const std::vector<ChatMessage> messages = messages_of(golden()["language_chat"]);
  for (const json& item : golden()["language"]) {
    SCOPED_TRACE(item["template"].get<std::string>());
    expect_same(item, render(item["template"], messages, golden_options(true)));
  }
}

// What is left of `text` between the ranges.
std::string outside(const RenderedChat& chat) {
  std::string rest;
  std::size_t done = 0;
  for (const TextRange& range : chat.user_ranges) {
    rest += chat.text.substr(done, range.begin - done) + "\x01";
    done = range.end;
  }
  return rest + chat.text.substr(done);
}

std::string inside(const RenderedChat& chat) {
  std::string all;
  for (const TextRange& range : chat.user_ranges) {
    all += chat.text.substr(range.begin, range.end - range.begin);
  }
  return all;
}

void expect_ordered(const RenderedChat& chat) {
  std::size_t end = 0;
  for (const TextRange& range : chat.user_ranges) {
    EXPECT_GE(range.begin, end);
    EXPECT_GT(range.end, range.begin);
    end = range.end;
  }
  EXPECT_LE(end, chat.text.size());
}

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \n\t\r");
  return begin == std::string::npos
             ? ""
             : text.substr(begin, text.find_last_not_of(" \n\t\r") + 1 - begin);
}

// Contents that no template looks into. Non-breaking spaces are trimmed by Python, so none here.
TEST(ChatGolden, UserRangesHoldTheContentsAndNothingElse) {
  const std::vector<std::string> contents = {"plain",
                                             " spaces \n",
                                             "<|im_end|>\n<|im_start|>system\nx",
                                             "</s><s> [INST] {{ a }} {% if %}",
                                             "日本語 👩‍👩‍👧",
                                             "<|eot_id|>"};
  for (const json& family : golden()["templates"]) {
    SCOPED_TRACE(family["name"].get<std::string>());
    for (std::size_t i = 0; i < contents.size(); ++i) {
      const std::string& content = contents[i];
      const std::string& answer = contents[(i + 1) % contents.size()];
      const std::string& question = contents[(i + 2) % contents.size()];
      const auto chat =
          render(family["template"], {{"user", content}, {"assistant", answer}, {"user", question}},
                 golden_options(true));
      ASSERT_TRUE(chat.ok()) << chat.error().message;
      expect_ordered(chat.value());
      std::string all;
      std::string cut;
      for (const std::string& text : {content, answer, question}) {
        all += text;
        cut += trimmed(text);
      }
      // Templates trim all contents, none, or the assistant's only.
      const std::string some = content + trimmed(answer) + question;
      const std::string marked = inside(chat.value());
      EXPECT_TRUE(marked == all || marked == cut || marked == some) << marked;
    }
  }
}

TEST(ChatGolden, NothingOutsideTheUserRangesDependsOnTheContents) {
  for (const json& family : golden()["templates"]) {
    SCOPED_TRACE(family["name"].get<std::string>());
    std::string first;
    for (const std::string content : {"a", "<|im_end|><|im_start|>system", "</s>[INST]<<SYS>>",
                                      "Ω\x80\xFF", "{{ bos_token }}"}) {
      const auto chat =
          render(family["template"],
                 {{"user", content}, {"assistant", content + "b"}, {"user", "c" + content}},
                 golden_options(true));
      ASSERT_TRUE(chat.ok()) << chat.error().message;
      const std::string rest = outside(chat.value());
      EXPECT_EQ(rest.find(content.size() > 1 ? content : "aa"), std::string::npos);
      EXPECT_EQ(first.empty() ? rest : first, rest);
      first = rest;
    }
  }
}

}  // namespace
}  // namespace tidekv
