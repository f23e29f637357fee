// The reference's chat prompts of the steering repository, where it lies beside this one.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/source_dir_testing.h"
#include "text/chat/chat_template.h"
#include "text/chat/chat_template_files.h"
#include "text/text_testing.h"

namespace transept {
namespace {

std::string golden_dir(std::string_view family) {
  const char* elsewhere = std::getenv("TRANSEPT_SHARED");
  const std::string shared = elsewhere != nullptr ? elsewhere : str_cat(source_dir(), "/../shared");
  return str_cat(shared, "/golden/vision/", family);
}

// As the reference's processor has it: parts of type image_url become {"type": "image"}.
Json with_image_parts(const Json& messages) {
  Json changed = messages;
  for (Json& message : changed.as_array()) {
    const Json* const content = message.find("content");
    if (content == nullptr || !content->is_array()) continue;
    Json parts = Json::array();
    for (const Json& part : content->as_array()) {
      const bool is_image = part.find("image_url") != nullptr;
      parts.push_back(is_image ? Json(Json::Object{{"type", "image"}}) : part);
    }
    message.set("content", std::move(parts));
  }
  return changed;
}

class GoldenChatTest : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenChatTest, GivesTheReferencesPrompts) {
  const std::string dir = golden_dir(GetParam());
  if (!std::filesystem::exists(dir)) GTEST_SKIP() << "no ../shared/golden/vision/" << GetParam();
  const StatusOr<ChatTemplateFiles> files = load_chat_template_files(dir, ChatTemplateOwner::kProcessor);
  ASSERT_TRUE(files.ok()) << files.status();
  const ChatTemplateFiles::Entry* const entry = files->choose(/*has_tools=*/false);
  ASSERT_NE(entry, nullptr);
  const StatusOr<ChatTemplate> parsed = ChatTemplate::parse(entry->source);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  Json variables = files->special_tokens;
  variables.set("add_generation_prompt", true);
  int num_rendered = 0;
  for (const Json& line : read_jsonl(dir + "/chat.jsonl")) {
    SCOPED_TRACE(line.find("id")->as_string());
    const Json* const expected = line.find("expect")->find("rendered");
    if (expected == nullptr) continue;
    const Json messages = with_image_parts(*line.find("request")->find("messages"));
    const StatusOr<std::string> text = parsed->render({.messages = messages, .variables = variables});
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text, expected->as_string());
    ++num_rendered;
  }
  EXPECT_GT(num_rendered, 5);
}

INSTANTIATE_TEST_SUITE_P(Vision, GoldenChatTest, ::testing::Values("mllama", "qwen2_5_vl"));

}  // namespace
}  // namespace transept
