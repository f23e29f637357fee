// The YAML that Marian writes, and texts that are none of it. Expectations are YAML 1.2's (PyYAML 6 says the same).
#include "foreign/marian_yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

YamlMap map_of(std::string_view text) {
  const auto map = parse_yaml_map(text);
  EXPECT_TRUE(map.ok()) << map.status();
  return map.ok() ? *map : YamlMap();
}

std::string text_of(std::string_view yaml, std::string_view key) {
  const YamlMap map = map_of(yaml);
  const YamlValue* value = find_yaml(map, key);
  return value == nullptr ? "none" : value->text;
}

std::string yaml_error(std::string_view text) {
  const auto map = parse_yaml_map(text);
  EXPECT_FALSE(map.ok()) << text;
  return map.ok() ? "" : error_message(map.status());
}

TEST(MarianYaml, ReadsOptions) {
  const YamlMap map = map_of(
      "# a comment\n---\ntype: transformer\nempty: \"\"\nnothing:\nnext: 1 # one\ndim-vocabs:\n  - 260\n  - 300\n"
      "models:\n- a.npz\n- 'b c.npz'\ntied:\n  []\ntypes: [sequence, \"a, b\"]\nnone: []\r\nbelow:\n  text\n"
      "version: v1.9.0 56fad9a 2020-01-01 10:20:30 +0000\n\n");
  ASSERT_EQ(map.size(), 11u);
  EXPECT_EQ(find_yaml(map, "type")->text, "transformer");
  EXPECT_EQ(find_yaml(map, "empty")->text, "");
  EXPECT_EQ(find_yaml(map, "nothing")->text, "");
  EXPECT_EQ(find_yaml(map, "next")->text, "1");
  EXPECT_THAT(find_yaml(map, "dim-vocabs")->list, ElementsAre("260", "300"));
  EXPECT_THAT(find_yaml(map, "models")->list, ElementsAre("a.npz", "b c.npz"));
  EXPECT_TRUE(find_yaml(map, "tied")->is_list);
  EXPECT_THAT(find_yaml(map, "tied")->list, IsEmpty());
  EXPECT_THAT(find_yaml(map, "types")->list, ElementsAre("sequence", "a, b"));
  EXPECT_TRUE(find_yaml(map, "none")->is_list);
  EXPECT_EQ(find_yaml(map, "below")->text, "text");
  EXPECT_EQ(find_yaml(map, "version")->text, "v1.9.0 56fad9a 2020-01-01 10:20:30 +0000");
  EXPECT_EQ(find_yaml(map, "absent"), nullptr);
}

TEST(MarianYaml, ReadsKeysOfEveryForm) {
  EXPECT_EQ(text_of("</s>: 0", "</s>"), "0");
  EXPECT_EQ(text_of("a:b: 1", "a:b"), "1");
  EXPECT_EQ(text_of("-: 1", "-"), "1");
  EXPECT_EQ(text_of("?: 1", "?"), "1");
  EXPECT_EQ(text_of("a#b: 1", "a#b"), "1");
  EXPECT_EQ(text_of("'it''s: #': 1", "it's: #"), "1");
  EXPECT_EQ(text_of(R"("a\"b\\c:" : 1)", "a\"b\\c:"), "1");
  EXPECT_EQ(text_of(R"("\x41\u00e9\U0001F600\t\0": 1)", std::string_view("A\xC3\xA9\xF0\x9F\x98\x80\t\0", 9)), "1");
  EXPECT_EQ(text_of(R"("\N\_\L\P\e\/\ ": 1)", "\xC2\x85\xC2\xA0\xE2\x80\xA8\xE2\x80\xA9\x1B/ "), "1");
  EXPECT_EQ(text_of("? a long key\n: 7\nb: 8", "a long key"), "7");
  EXPECT_EQ(text_of("? \"q: \"\n: 7", "q: "), "7");
  EXPECT_EQ(text_of("▁the: 5", "▁the"), "5");
  EXPECT_EQ(text_of("a: 1\na: 2", "a"), "2") << "the last";
  EXPECT_EQ(map_of("a: 1\na: 2").size(), 2u);
  EXPECT_EQ(text_of("\xEF\xBB\xBF"
                    "a: 1",
                    "a"),
            "1");
}

TEST(MarianYaml, RefusesWhatItDoesNotRead) {
  EXPECT_THAT(yaml_error("a: 1\nb"), StartsWith("line 2: expected \"key: value\""));
  EXPECT_THAT(yaml_error("a:1"), HasSubstr("expected"));
  EXPECT_THAT(yaml_error("a: b: c"), HasSubstr("a map in a map"));
  EXPECT_THAT(yaml_error("a:\n  b: 1"), HasSubstr("a map in a map"));
  EXPECT_THAT(yaml_error("a: 1\n  2"), HasSubstr("not read"));
  EXPECT_THAT(yaml_error("- 1"), HasSubstr("an item of no list"));
  EXPECT_THAT(yaml_error("a: 1\n- 1"), HasSubstr("an item of no list"));
  EXPECT_THAT(yaml_error("a:\n- - 1"), HasSubstr("a list in a list"));
  EXPECT_THAT(yaml_error("a: &x 1"), HasSubstr("begins with \"&\""));
  EXPECT_THAT(yaml_error("a: *x"), HasSubstr("begins with \"*\""));
  EXPECT_THAT(yaml_error("a: !!python/object:os.system x"), HasSubstr("begins with \"!\""));
  EXPECT_THAT(yaml_error("a: |\n  text"), HasSubstr("begins with \"|\""));
  EXPECT_THAT(yaml_error("a: {b: 1}"), HasSubstr("not read"));
  EXPECT_THAT(yaml_error("a: \"b"), HasSubstr("does not end"));
  EXPECT_THAT(yaml_error("a: 'b"), HasSubstr("does not end"));
  EXPECT_THAT(yaml_error("a: 'b' c"), HasSubstr("text behind a value"));
  EXPECT_THAT(yaml_error("a: [1, 2"), HasSubstr("does not end"));
  EXPECT_THAT(yaml_error("a: [1] 2"), HasSubstr("text behind a value"));
  for (const char* escape : {R"(\q)", R"(\x4)", R"(\ud800)", R"(\U00110000)", R"(\xZZ)"}) {
    EXPECT_THAT(yaml_error(str_cat("\"", escape, "\": 1")), HasSubstr("escape")) << escape;
  }
  EXPECT_THAT(yaml_error("? a"), HasSubstr("has no value"));
  EXPECT_THAT(yaml_error("? a\nb: 1"), HasSubstr("has no value"));
}

}  // namespace
}  // namespace transept
