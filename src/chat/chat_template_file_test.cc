#include "chat/chat_template_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "chat/chat_template.h"

namespace tidekv {
namespace {

// A folder of its own for each test, emptied before.
class ChatTemplateFile : public testing::Test {
 protected:
  ChatTemplateFile() {
    const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "chat_template_" + test->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~ChatTemplateFile() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
  }
  std::string error_of(const Result<ChatTemplateSource>& found) const {
    return found.ok() ? "no error" : found.error().message;
  }

  std::string folder_;
};

TEST_F(ChatTemplateFile, TheFileOfItsOwnComesFirst) {
  write("chat_template.jinja", "own");
  write("tokenizer_config.json", R"({"chat_template": "other"})");
  EXPECT_EQ(read_chat_template(folder_).value().source, "own");
  EXPECT_EQ(read_chat_template(folder_).value().where, folder_ + "/chat_template.jinja");
}

TEST_F(ChatTemplateFile, TheTokenizersConfigurationComesSecond) {
  write("tokenizer_config.json", R"({"a": [1], "chat_template": "{{ 'x' }}\n", "b": {}})");
  EXPECT_EQ(read_chat_template(folder_).value().source, "{{ 'x' }}\n");
}

TEST_F(ChatTemplateFile, OfAListTheDefaultIsTaken) {
  write("tokenizer_config.json",
        R"({"chat_template": [{"name": "tool_use", "template": "no"},
                              {"name": "default", "template": "yes"}]})");
  EXPECT_EQ(read_chat_template(folder_).value().source, "yes");
}

TEST_F(ChatTemplateFile, ErrorsOfATemplateNameTheFileThatItStandsIn) {
  write("tokenizer_config.json", R"({"chat_template": "a\n{% nope %}"})");
  const auto found = read_chat_template(folder_);
  ASSERT_TRUE(found.ok()) << found.error().message;
  const auto loaded = ChatTemplate::parse(found.value().source, found.value().where);
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().message, folder_ +
                                        "/tokenizer_config.json: chat_template: line 2: tag "
                                        "'nope' is not supported");
}

TEST_F(ChatTemplateFile, AFolderWithoutTemplateSaysWhereItLooked) {
  const std::string wanted = folder_ +
                             ": no chat template: no chat_template.jinja, and no "
                             "\"chat_template\" in tokenizer_config.json";
  EXPECT_EQ(error_of(read_chat_template(folder_)), wanted);
  write("tokenizer_config.json", R"({"chat_template": null, "bos_token": "<s>"})");
  EXPECT_EQ(error_of(read_chat_template(folder_)), wanted);
  EXPECT_EQ(read_chat_template(folder_).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(error_of(read_chat_template(folder_ + "/none")),
            folder_ +
                "/none: no chat template: no chat_template.jinja, and no "
                "\"chat_template\" in tokenizer_config.json");
}

TEST_F(ChatTemplateFile, FieldsOfTheWrongTypeAreNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"7", "chat_template is the number 7; expected a string, or a list of named templates"},
      {"{}", "chat_template is an object; expected a string, or a list of named templates"},
      {"[]", "chat_template has no template named 'default', only: "},
      {"[1]", "chat_template holds the number 1; expected objects"},
      {R"([{"name": "a", "template": "b"}])", "has no template named 'default', only: 'a'"},
      {R"([{"template": "b"}])", "field 'chat_template[].name' is missing; expected a string"},
      {R"([{"name": 1, "template": "b"}])", "field 'chat_template[].name' is the number 1"},
      {R"([{"name": "default"}])", "field 'chat_template[].template' is missing"},
      {R"([{"name": "default", "template": []}])", "field 'chat_template[].template' is an array"},
  };
  for (const auto& [field, wanted] : cases) {
    write("tokenizer_config.json", R"({"chat_template": )" + field + "}");
    const std::string message = error_of(read_chat_template(folder_));
    EXPECT_TRUE(message.starts_with(folder_ + "/tokenizer_config.json: ")) << message;
    EXPECT_NE(message.find(wanted), std::string::npos) << message;
  }
}

TEST_F(ChatTemplateFile, BrokenFilesAreNamed) {
  for (const std::string text : {"", "[]", "{", R"({"chat_template": "a")", "\xFF\xFE"}) {
    write("tokenizer_config.json", text);
    const std::string message = error_of(read_chat_template(folder_));
    EXPECT_TRUE(message.starts_with(folder_ + "/tokenizer_config.json: ")) << message;
    EXPECT_FALSE(read_special_token_texts(folder_).ok());
  }
  write("chat_template.jinja", std::string(300 << 10, 'a'));
  EXPECT_EQ(error_of(read_chat_template(folder_)),
            folder_ + "/chat_template.jinja: 307200 bytes; expected at most 262144");
}

TEST_F(ChatTemplateFile, AFolderInTheFilesPlaceIsAnError) {
  std::filesystem::create_directory(folder_ + "/chat_template.jinja");
  const std::string message = error_of(read_chat_template(folder_));
  EXPECT_TRUE(message.starts_with(folder_ + "/chat_template.jinja: ")) << message;
  std::filesystem::remove(folder_ + "/chat_template.jinja");
  std::filesystem::create_directory(folder_ + "/tokenizer_config.json");
  const std::string other = error_of(read_chat_template(folder_));
  EXPECT_TRUE(other.starts_with(folder_ + "/tokenizer_config.json: ")) << other;
}

TEST_F(ChatTemplateFile, TokensAreTextsOrObjectsWithTheirContent) {
  write("tokenizer_config.json",
        R"({"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false},
            "unk_token": null, "mask_token": 5})");
  const auto tokens = read_special_token_texts(folder_);
  ASSERT_TRUE(tokens.ok()) << tokens.error().message;
  EXPECT_EQ(tokens.value().bos_token, "<s>");
  EXPECT_EQ(tokens.value().eos_token, "</s>");
  EXPECT_EQ(tokens.value().unk_token, "");
  EXPECT_EQ(tokens.value().pad_token, "");
}

TEST_F(ChatTemplateFile, TokensOfTheWrongTypeAreNamed) {
  for (const std::string field : {"5", "[]", "{}", R"({"content": 5})"}) {
    write("tokenizer_config.json", R"({"eos_token": )" + field + "}");
    const auto tokens = read_special_token_texts(folder_);
    ASSERT_FALSE(tokens.ok()) << field;
    EXPECT_NE(tokens.error().message.find("field 'eos_token"), std::string::npos)
        << tokens.error().message;
  }
}

TEST_F(ChatTemplateFile, WithoutConfigurationThereAreNoTokens) {
  EXPECT_EQ(read_special_token_texts(folder_).value().bos_token, "");
}

}  // namespace
}  // namespace tidekv
