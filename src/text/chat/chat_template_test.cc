// What the reference does not show: messages of errors, bounds, what is not supported, time.
#include "text/chat/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <thread>

#include "base/scoped_variable_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Json parse(std::string_view text) { return Json::parse(text).value(); }

StatusOr<std::string> render(std::string_view source, std::string_view messages = "[]",
                             std::string_view variables = "{}") {
  ASSIGN_OR_RETURN(const ChatTemplate parsed, ChatTemplate::parse(source));
  return parsed.render({.messages = parse(messages), .variables = parse(variables)});
}

void expect_error(std::string_view source, absl::StatusCode code, std::string_view message) {
  SCOPED_TRACE(std::string(source.substr(0, 200)));
  const StatusOr<std::string> text = render(source);
  ASSERT_FALSE(text.ok()) << text->substr(0, 100);
  EXPECT_EQ(text.status().code(), code);
  EXPECT_THAT(error_message(text.status()), HasSubstr(std::string(message)));
}

TEST(ChatTemplateTest, VariablesThatAreAlwaysThere) {
  EXPECT_EQ(render("{{ messages }} {{ tools }} {{ documents }} {{ add_generation_prompt }} {{ bos_token is defined }}")
                .value(),
            "[] None None False False");
  EXPECT_EQ(render("{{ tools }}{{ add_generation_prompt }}", "[]", R"({"tools": [1], "add_generation_prompt": true})")
                .value(),
            "[1]True");
  EXPECT_EQ(render("{{ messages }}", R"([{"role": "a"}])", R"({"messages": 5})").value(), "[{'role': 'a'}]");
}

TEST(ChatTemplateTest, MessagesAsTransformersPreparesThem) {
  EXPECT_EQ(render("{{ messages }}", R"([{"role": "a", "content": null, "x": [null]}])").value(),
            "[{'role': 'a', 'x': [None]}]");
  EXPECT_EQ(render("{{ messages }}", R"([{"role": "a", "reasoning": "r"}])").value(),
            "[{'thinking': 'r', 'role': 'a', 'reasoning': 'r', 'reasoning_content': 'r'}]");
  EXPECT_EQ(render("{{ messages }}", R"([{"reasoning_content": "c", "role": "a", "thinking": "t"}])").value(),
            "[{'thinking': 't', 'reasoning_content': 'c', 'role': 'a'}]");
}

TEST(ChatTemplateTest, InputOfAnotherKindIsNamed) {
  const StatusOr<std::string> no_list = render("", "{}");
  EXPECT_EQ(error_param(no_list.status()), "messages");
  const StatusOr<std::string> no_object = render("", R"([{"role": "a"}, 5])");
  EXPECT_EQ(error_param(no_object.status()), "messages[1]");
  EXPECT_FALSE(render("", "[]", "[]").ok());
}

TEST(ChatTemplateTest, ErrorsHaveALine) {
  using enum absl::StatusCode;
  expect_error("\n\n{% if %}{% endif %}", kInvalidArgument, "line 3: expected an expression, found %}");
  expect_error("\n{{ 1 + }}", kInvalidArgument, "line 2: expected an expression, found }}");
  expect_error("a\n{# no end\n\n", kInvalidArgument, "line 2: the comment has no end");
  expect_error("\n{{ 'a }}", kInvalidArgument, "line 2: the string has no end");
  expect_error("\n{% for x in y %}\n", kInvalidArgument, "expected \"endfor\", found the end of the template");
  expect_error("\n{{ none + 1 }}", kInvalidArgument, "line 2: unsupported operand types for +: None and int");
  expect_error("\n{% for m in messages %}{% endfor %}\n{{ raise_exception('Roles must\nalternate') }}",
               kInvalidArgument, "line 3: Roles must\nalternate");
  expect_error("\n{{ missing.a }}", kInvalidArgument, "line 2: \"missing\" is undefined");
  expect_error("\n{{ messages.b.c }}", kInvalidArgument, "line 2: list has no attribute \"b\"");
  expect_error("\n{{ 'a' | nope }}", kInvalidArgument, "line 2: there is no filter \"nope\"");
  expect_error("\n{{ 'a' is nope }}", kInvalidArgument, "line 2: there is no test \"nope\"");
  expect_error("\n{% nope %}", kInvalidArgument, "line 2: there is no statement \"nope\"");
  expect_error("{{ \xff }}", kInvalidArgument, "not valid UTF-8");
}

TEST(ChatTemplateTest, WhatIsNotSupportedIsNamed) {
  using enum absl::StatusCode;
  expect_error("\n{% include 'x' %}", kUnimplemented, "line 2: the statement \"include\" is not supported");
  expect_error("{% block a %}{% endblock %}", kUnimplemented, "line 1: the statement \"block\" is not supported");
  expect_error("{% for a in b recursive %}{% endfor %}", kUnimplemented, "line 1: a recursive loop is not supported");
  expect_error("\n{{ 'a' | urlize }}", kUnimplemented, "line 2: the filter \"urlize\" is not supported");
  expect_error("{{ 'a'.zfill(3) }}", kUnimplemented, "line 1: the attribute \"zfill\" of a str is not supported");
  expect_error("{{ cycler(1) }}", kUnimplemented, "line 1: this function of Jinja is not supported");
  expect_error("{{ 9223372036854775807 + 1 }}", kUnimplemented, "line 1: arithmetic beyond 64 bits is not supported");
  expect_error("{{ 9223372036854775808 }}", kUnimplemented, "line 1: an integer beyond 64 bits is not supported");
  expect_error("{{ ('<' | safe) + '<' }}", kUnimplemented, "line 1: + on a text that `safe` made is not supported");
  expect_error("{{ messages | map('upper') }}", kUnimplemented,
               "line 1: printing a value of type generator is not supported");
  expect_error("{{ 'é'.isdigit() }}", kUnimplemented, "beyond ASCII is not supported");
  expect_error("{{ self.a() }}", kUnimplemented, "the variable \"self\" is not supported");
}

TEST(ChatTemplateTest, FiltersUnderAnIfFailWhenTheyAreReached) {
  const auto parsed = ChatTemplate::parse("{% if deep %}\n{{ 'a' | urlize }}{{ 'b' is nope }}{% else %}ok{% endif %}");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_THAT(parsed->unsupported(),
              ElementsAre("line 2: the filter \"urlize\" is not supported", "line 2: there is no test \"nope\""));
  EXPECT_EQ(parsed->render({.messages = Json::array(), .variables = Json::object()}).value(), "ok");
  const auto reached = parsed->render({.messages = Json::array(), .variables = parse(R"({"deep": true})")});
  EXPECT_EQ(reached.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(error_message(reached.status()), "line 2: the filter \"urlize\" is not supported");
}

std::string repeated(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(ChatTemplateTest, StepsAndSizesAreBounded) {
  using enum absl::StatusCode;
  const std::string_view loops = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
  expect_error(loops, kResourceExhausted, "more than 1000000 steps");
  expect_error("{% set ns = namespace(x='ab') %}{% for i in range(64) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
               kResourceExhausted, "steps");
  expect_error("{% set ns = namespace(x=[1]) %}{% for i in range(64) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
               kResourceExhausted, "steps");
  expect_error("{{ 'a' * 100000000000 }}", kResourceExhausted, "steps");
  expect_error("{{ [1] * 100000000000 }}", kResourceExhausted, "steps");
  expect_error("{{ 'a' | indent(99999999999) }}", kResourceExhausted, "steps");
  expect_error("{{ [1] | tojson(indent=99999999999) }}", kResourceExhausted, "steps");
  expect_error("{% set x = 'a' * 1000000 %}{{ x.replace('a', x) }}", kResourceExhausted, "steps");
  expect_error("{% set x = 'a' * 1000000 %}{{ x | list | join(x) }}", kResourceExhausted, "steps");
  // Two that share all they hold: 2^60 items.
  const std::string_view shared =
      "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(60) %}{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, "
      "ns.b] %}{% endfor %}";
  expect_error(str_cat(shared, "{{ ns.a == ns.b }}"), kResourceExhausted, "steps");
  expect_error(str_cat(shared, "{{ ns.a | string | length }}"), kResourceExhausted, "steps");
  expect_error(str_cat(shared, "{{ ns.a | tojson | length }}"), kResourceExhausted, "steps");
  expect_error("{{ 'a' * 1048577 }}", kResourceExhausted, "more than 1048576 bytes");
  EXPECT_EQ(render("{{ 'a' * 1048576 }}").value().size(), ChatTemplate::kMaxOutputBytes);
  EXPECT_TRUE(render(repeated(" ", ChatTemplate::kMaxSourceBytes)).ok());
  expect_error(repeated(" ", ChatTemplate::kMaxSourceBytes + 1), kInvalidArgument, "more than 262144 bytes");
}

TEST(ChatTemplateTest, LevelsAreBounded) {
  using enum absl::StatusCode;
  const std::pair<std::string_view, std::string_view> brackets[] = {
      {"(", ")"}, {"[", "]"}, {"{1: ", "}"}, {"a[", "]"}, {"a(", ")"}, {"not ", ""}, {"-", ""}, {"1 if 0 else ", ""}};
  for (const auto& [open, close] : brackets) {
    expect_error(str_cat("{{ ", repeated(open, 20'000), "1 ", repeated(close, 20'000), " }}"), kInvalidArgument,
                 "levels");
  }
  expect_error(repeated("{% if a %}", 20'000), kInvalidArgument, "levels");
  expect_error(str_cat("{{ a", repeated(" + a", 50'000), " }}"), kInvalidArgument, "levels");
  expect_error(str_cat("{{ a", repeated("|d", 50'000), " }}"), kInvalidArgument, "levels");
  expect_error(str_cat("{{ a", repeated(".a", 50'000), " }}"), kInvalidArgument, "levels");
  EXPECT_EQ(render(str_cat("{{ 1", repeated(" + 1", 100), " }}")).value(), "101");
  EXPECT_EQ(render(str_cat("{{ ", repeated("(", 50), "1", repeated(")", 50), " }}")).value(), "1");
  expect_error("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", kInvalidArgument, "levels");
  const std::string_view deep =
      "{% set ns = namespace(x=(1,)) %}{% for i in range(50000) %}{% set ns.x = (ns.x,) %}{% endfor %}";
  for (const std::string_view use :
       {"{{ ns.x }}", "{{ ns.x | tojson }}", "{{ ns.x in {} }}", "{{ ns.x in [ns.x[0]] }}"}) {
    expect_error(str_cat(deep, use), kInvalidArgument, "levels");
  }
  expect_error(
      "{% set ns = namespace(x=['a']) %}{% for i in range(50000) %}{% set ns.x = ns.x | map('upper') %}{% endfor %}{{ "
      "ns.x | list }}",
      kInvalidArgument, "too deeply");
  // Names of many branches are copied from branch to branch.
  std::string names;
  for (int i = 0; i < 3000; ++i) names += str_cat("{% set a", i, " = 1 %}");
  expect_error(str_cat(names, repeated("{% if a %}{% endif %}", 3000)), kResourceExhausted, "too many names");
}

TEST(ChatTemplateTest, DeepInputIsAnError) {
  Json deep = Json::array();
  for (int i = 0; i < 300; ++i) deep = Json(Json::Array{deep});
  const auto parsed = ChatTemplate::parse("");
  const auto text = parsed->render({.messages = Json::array(), .variables = Json(Json::Object{{"x", deep}})});
  EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
  const auto sound = ChatTemplate::parse("{{ x }}")->render(
      {.messages = Json::array(), .variables = Json(Json::Object{{"x", "a\xff"}})});
  EXPECT_EQ(sound.value(), "a\xEF\xBF\xBD");  // not valid UTF-8
}

TEST(ChatTemplateTest, TimeIsTheCallersInLocalTime) {
  const testing::ScopedVariable zone("TZ", "UTC-2");
  tzset();
  const auto parsed = ChatTemplate::parse("{{ strftime_now('%d %b %Y %H:%M:%S.%f%z|%%f') }}");
  const std::chrono::system_clock::time_point now{std::chrono::seconds(1721988000) + std::chrono::microseconds(42)};
  EXPECT_EQ(parsed->render({.messages = Json::array(), .variables = Json::object(), .now = now}).value(),
            "26 Jul 2024 12:00:00.000042|%f");
}

TEST(ChatTemplateTest, RendersOnSeveralThreads) {
  const auto parsed = ChatTemplate::parse(
      "{% macro m(x) %}{{ x | upper }}{% endmacro %}{% for i in range(200) %}{{ m('a' ~ i) }}{% endfor %}");
  const ChatTemplate::Input input{.messages = Json::array(), .variables = Json::object()};
  const std::string expected = parsed->render(input).value();
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  threads.reserve(texts.size());
  for (std::string& text : texts) threads.emplace_back([&] { text = parsed->render(input).value(); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(texts, ElementsAre(expected, expected, expected, expected));
}

}  // namespace
}  // namespace transept
