// Whose chat template a model has, and what happens where it cannot be used.
#include "startup/chat_prompts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/folder_testing.h"

namespace transept {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ChatPromptsTest : public ::testing::Test {
 protected:
  using Loaded = StatusOr<std::unique_ptr<const ChatPrompts>>;
  Loaded load(const std::string& file = "", ChatTemplateOwner owner = ChatTemplateOwner::kTokenizer) {
    return ChatPrompts::load(folder_.path(), owner, file);
  }
  static StatusOr<std::string> render(const Loaded& prompts, std::string_view messages = kHello) {
    EXPECT_TRUE(prompts.ok()) << prompts.status();
    if (!prompts.ok() || *prompts == nullptr) return not_found("no template");
    return (*prompts)->render(Json::parse(messages).value());
  }
  std::string path(std::string_view name) { return str_cat(folder_.path(), "/", name); }

  static constexpr std::string_view kHello = R"([{"role": "user", "content": "hello"}])";
  static constexpr std::string_view kTurns =
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}";
  const testing::TestFolder folder_;
};

TEST_F(ChatPromptsTest, AFolderMayHaveNoTemplate) {
  const Loaded prompts = load();
  ASSERT_TRUE(prompts.ok()) << prompts.status();
  EXPECT_EQ(*prompts, nullptr);
}

TEST_F(ChatPromptsTest, TheFoldersTemplateHasItsTokensAndBeginsTheAnswer) {
  folder_.write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": "old"})");
  EXPECT_EQ(render(load()).value(), "old");
  folder_.write("chat_template.jinja", kTurns);
  EXPECT_EQ(render(load()).value(), "<s>[user]hello[assistant]");
  EXPECT_THAT((*load())->warnings(), IsEmpty());
}

TEST_F(ChatPromptsTest, AProcessorHasAFileOfItsOwn) {
  folder_.write("chat_template.json", R"({"chat_template": "processor"})");
  EXPECT_EQ(render(load("", ChatTemplateOwner::kProcessor)).value(), "processor");
  EXPECT_EQ(*load(), nullptr);
}

TEST_F(ChatPromptsTest, AFlagsFileComesFirst) {
  folder_.write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": "old"})");
  folder_.write("other.jinja", kTurns);
  EXPECT_EQ(render(load(path("other.jinja"))).value(), "<s>[user]hello[assistant]");
}

TEST_F(ChatPromptsTest, AFlagsFileThatIsMissingOrNoTemplateIsAnError) {
  EXPECT_THAT(error_message(load(path("none.jinja")).status()), HasSubstr("none.jinja"));
  folder_.write("broken.jinja", "\n{% if %}");
  EXPECT_THAT(error_message(load(path("broken.jinja")).status()), HasSubstr("broken.jinja: line 2: "));
  folder_.write("large.jinja", std::string(ChatTemplate::kMaxSourceBytes + 1, ' '));
  EXPECT_FALSE(load(path("large.jinja")).ok());
}

TEST_F(ChatPromptsTest, WhatIsNotSupportedIsAWarningAndARefusal) {
  folder_.write("chat_template.jinja", "a\n{% include 'x' %}");
  for (const std::string& file : {std::string(), path("chat_template.jinja")}) {
    const Loaded prompts = load(file);
    ASSERT_TRUE(prompts.ok()) << prompts.status();
    EXPECT_THAT((*prompts)->warnings(),
                ElementsAre(AllOf(HasSubstr("chat_template.jinja: line 2: "), HasSubstr("include"))));
    const Status refusal = render(prompts).status();
    EXPECT_EQ(refusal.code(), absl::StatusCode::kUnimplemented);
    EXPECT_EQ(error_param(refusal), "messages");
    EXPECT_THAT(error_message(refusal), HasSubstr("line 2: "));
  }
}

TEST_F(ChatPromptsTest, WhatIsNotReachedIsAWarningAlone) {
  folder_.write("chat_template.jinja",
                "{% if messages|length > 1 %}\n{{ 'x' | urlize }}{% endif %}{{ messages[0].content }}");
  const Loaded prompts = load();
  ASSERT_TRUE(prompts.ok()) << prompts.status();
  EXPECT_THAT((*prompts)->warnings(), ElementsAre(AllOf(HasSubstr("line 2: "), HasSubstr("urlize"))));
  EXPECT_EQ(render(prompts).value(), "hello");
  EXPECT_EQ(render(prompts, R"([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}])").status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST_F(ChatPromptsTest, AFoldersTemplateThatIsBrokenRefusesChatsAlone) {
  for (const auto& [name, content] :
       {std::pair("chat_template.jinja", "{% if %}"), std::pair("tokenizer_config.json", R"({"chat_template": 5})")}) {
    const testing::TestFolder folder;
    folder.write(name, content);
    const Loaded prompts = ChatPrompts::load(folder.path(), ChatTemplateOwner::kTokenizer, "");
    ASSERT_TRUE(prompts.ok()) << prompts.status();
    EXPECT_THAT((*prompts)->warnings(), ElementsAre(AllOf(HasSubstr(name), HasSubstr("chats are refused"))));
    const Status refusal = render(prompts).status();
    EXPECT_EQ(refusal.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(error_param(refusal), "messages");
  }
}

TEST_F(ChatPromptsTest, EveryErrorOfATemplateIsTheRequests) {
  folder_.write("chat_template.jinja",
                "{% if messages[0].content == 'loop' %}{% for i in range(99999999) %}{{ i }}{% endfor %}{% endif %}"
                "{% if messages[0].content == 'long' %}{{ 'x' * 9999999 }}{% endif %}"
                "{{ raise_exception('Roles must alternate') }}");
  const Loaded prompts = load();
  for (const char* content : {"loop", "long", "a"}) {
    const Status refusal = render(prompts, str_cat(R"([{"role": "user", "content": ")", content, "\"}]")).status();
    EXPECT_EQ(refusal.code(), absl::StatusCode::kInvalidArgument) << content;  // kResourceExhausted would be 429
    EXPECT_EQ(error_param(refusal), "messages");
    if (std::string_view(content) == "a") {
      EXPECT_THAT(error_message(refusal), HasSubstr("Roles must alternate"));
    }
  }
}

}  // namespace
}  // namespace transept
