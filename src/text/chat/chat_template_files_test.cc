#include "text/chat/chat_template_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/folder_testing.h"

namespace transept {
namespace {

using ::testing::HasSubstr;

class ChatTemplateFilesTest : public ::testing::Test {
 protected:
  ChatTemplateFiles load(ChatTemplateOwner owner = ChatTemplateOwner::kTokenizer) {
    StatusOr<ChatTemplateFiles> files = load_chat_template_files(folder_.path(), owner);
    EXPECT_TRUE(files.ok()) << files.status();
    return files.ok() ? std::move(files).value() : ChatTemplateFiles();
  }
  std::string chosen(bool has_tools, ChatTemplateOwner owner = ChatTemplateOwner::kTokenizer) {
    const ChatTemplateFiles files = load(owner);
    const ChatTemplateFiles::Entry* const entry = files.choose(has_tools);
    return entry == nullptr ? "none" : str_cat(entry->file, ": ", entry->source);
  }
  void expect_error(std::string_view message, ChatTemplateOwner owner = ChatTemplateOwner::kTokenizer) {
    const StatusOr<ChatTemplateFiles> files = load_chat_template_files(folder_.path(), owner);
    ASSERT_FALSE(files.ok());
    EXPECT_THAT(error_message(files.status()), HasSubstr(std::string(message)));
  }
  void write_more(std::string_view name, std::string_view content) {
    std::filesystem::create_directories(folder_.path() + "/additional_chat_templates");
    folder_.write(str_cat("additional_chat_templates/", name), content);
  }

  const testing::TestFolder folder_;
};

constexpr auto kProcessor = ChatTemplateOwner::kProcessor;

TEST_F(ChatTemplateFilesTest, AFolderMayHaveNone) {
  EXPECT_EQ(chosen(false), "none");
  EXPECT_EQ(chosen(false, kProcessor), "none");
  EXPECT_TRUE(load().templates.empty());
}

TEST_F(ChatTemplateFilesTest, JinjaFilesComeBeforeTheTokenizersConfig) {
  folder_.write("tokenizer_config.json", R"({"chat_template": "old"})");
  EXPECT_EQ(chosen(false), "tokenizer_config.json: old");
  EXPECT_EQ(chosen(false, kProcessor), "tokenizer_config.json: old");
  folder_.write("chat_template.jinja", "new\n");
  EXPECT_EQ(chosen(true), "chat_template.jinja: new\n");
}

TEST_F(ChatTemplateFilesTest, ListsHaveNames) {
  folder_.write("tokenizer_config.json",
                R"({"chat_template": [{"name": "default", "template": "d"}, {"name": "tool_use", "template": "t"}]})");
  EXPECT_EQ(chosen(false), "tokenizer_config.json: d");
  EXPECT_EQ(chosen(true), "tokenizer_config.json: t");
  folder_.write("tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "r"}]})");
  EXPECT_EQ(chosen(false), "none");
  EXPECT_EQ(load().templates.size(), 1u);
}

TEST_F(ChatTemplateFilesTest, MoreTemplatesStandInAFolder) {
  folder_.write("chat_template.jinja", "d");
  write_more("tool_use.jinja", "t");
  write_more("readme.txt", "no template");
  EXPECT_EQ(chosen(false), "chat_template.jinja: d");
  EXPECT_EQ(chosen(true), "additional_chat_templates/tool_use.jinja: t");
  EXPECT_EQ(chosen(true, kProcessor), "chat_template.jinja: d");  // processors take no notice of tools
}

TEST_F(ChatTemplateFilesTest, ProcessorsHaveFilesOfTheirOwn) {
  folder_.write("chat_template.jinja", "jinja");
  folder_.write("chat_template.json", R"({"chat_template": "legacy"})");
  EXPECT_EQ(chosen(false), "chat_template.jinja: jinja");
  EXPECT_EQ(chosen(false, kProcessor), "chat_template.json: legacy");
  folder_.write("processor_config.json", R"({"processor_class": "X", "chat_template": null})");
  EXPECT_EQ(chosen(false, kProcessor), "chat_template.json: legacy");
  folder_.write("processor_config.json", R"({"chat_template": "config"})");
  EXPECT_EQ(chosen(false, kProcessor), "processor_config.json: config");
}

TEST_F(ChatTemplateFilesTest, ALegacyFileBesideMoreTemplatesIsAnError) {
  folder_.write("chat_template.json", R"({"chat_template": "legacy"})");
  write_more("tool_use.jinja", "t");
  expect_error("chat_template.json: must not stand beside additional_chat_templates", kProcessor);
}

TEST_F(ChatTemplateFilesTest, SpecialTokensAreStrings) {
  folder_.write("tokenizer_config.json",
                R"({"bos_token": "<s>", "eos_token": {"__type": "AddedToken", "content": "</s>"}, "pad_token": null,
      "image_token": "<image>", "add_bos_token": true, "extra_special_tokens": {"audio_token": "<audio>"}})");
  folder_.write("special_tokens_map.json",
                R"({"eos_token": {"content": "<end>", "lstrip": false}, "unk_token": "<unk>"})");
  EXPECT_EQ(
      load().special_tokens.dump(),
      R"({"bos_token": "<s>", "eos_token": "<end>", "image_token": "<image>", "audio_token": "<audio>", "unk_token": "<unk>"})");
  folder_.write("tokenizer_config.json", R"({"bos_token": "<s>", "added_tokens_decoder": {}})");
  EXPECT_EQ(load().special_tokens.dump(), R"({"bos_token": "<s>"})");
}

TEST_F(ChatTemplateFilesTest, ErrorsNameFileAndField) {
  folder_.write("tokenizer_config.json", R"({"chat_template": 5})");
  expect_error("tokenizer_config.json: chat_template: expected a string, found a number");
  folder_.write("tokenizer_config.json", R"({"chat_template": [{"name": "a"}]})");
  expect_error("tokenizer_config.json: chat_template[0].template: is missing");
  folder_.write("tokenizer_config.json", R"({"chat_template": ["a"]})");
  expect_error("tokenizer_config.json: chat_template[0]: expected an object");
  folder_.write("tokenizer_config.json", "[]");
  expect_error("tokenizer_config.json: expected an object");
  folder_.write("tokenizer_config.json", "{");
  expect_error("tokenizer_config.json: ");
  folder_.write("chat_template.jinja", std::string((size_t{256} << 10) + 1, ' '));
  expect_error("chat_template.jinja: ");
}

}  // namespace
}  // namespace transept
