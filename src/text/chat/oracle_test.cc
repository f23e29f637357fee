// Texts of Python's jinja2 in the environment of transformers 5.23. semantics.jsonl has small templates with texts
// written from what jinja2 documents and does; published.jsonl has templates with the constructs of published ones, and
// what make_published.py got for them. tests/chat_templates/differential.py compares both files with the reference
// itself.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/input_file.h"
#include "base/source_dir_testing.h"
#include "text/chat/chat_template.h"
#include "text/text_testing.h"

namespace transept {
namespace {

std::string data_file(std::string_view name) { return str_cat(source_dir(), "/tests/chat_templates/", name); }

StatusOr<std::string> render(std::string_view source, const Json& messages, const Json& variables) {
  ASSIGN_OR_RETURN(const ChatTemplate parsed, ChatTemplate::parse(source));
  return parsed.render({.messages = messages, .variables = variables});
}

void expect_same(const StatusOr<std::string>& text, const Json& expected) {
  const Json* const wanted = expected.find("text");
  if (wanted == nullptr) {
    ASSERT_FALSE(text.ok()) << "not an error: " << *text;
    EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument) << text.status();
  } else {
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text, wanted->as_string());
  }
}

TEST(ChatTemplateOracleTest, SmallTemplates) {
  const std::vector<Json> lines = read_jsonl(data_file("semantics.jsonl"));
  ASSERT_GT(lines.size(), 250u);
  const Json& variables = *lines[0].find("variables");
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::string& source = lines[i].find("template")->as_string();
    SCOPED_TRACE(source);
    expect_same(render(source, Json::array(), variables), lines[i]);
  }
}

TEST(ChatTemplateOracleTest, PublishedConstructs) {
  const StatusOr<std::string> text = read_file(data_file("conversations.json"));
  ASSERT_TRUE(text.ok()) << text.status();
  const StatusOr<Json> conversations = Json::parse(*text);
  ASSERT_TRUE(conversations.ok()) << conversations.status();
  const std::vector<Json> lines = read_jsonl(data_file("published.jsonl"));
  ASSERT_GT(lines.size(), 100u);
  for (const Json& expected : lines) {
    const std::string& file = expected.find("template")->as_string();
    const std::string& name = expected.find("conversation")->as_string();
    SCOPED_TRACE(str_cat(file, ", ", name));
    const StatusOr<std::string> source = read_file(data_file(str_cat("templates/", file)));
    ASSERT_TRUE(source.ok()) << source.status();
    const Json& conversation = *conversations->find(name);
    expect_same(render(*source, *conversation.find("messages"), *conversation.find("variables")), expected);
  }
}

}  // namespace
}  // namespace transept
