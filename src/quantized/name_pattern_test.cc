// Proves that patterns match what Python's re.match says (each row was checked with Python 3.11), that what is outside
// the subset is refused by name, and that matching is linear.
#include "quantized/name_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace transept {
namespace {

using ::testing::HasSubstr;

bool matches(std::string_view pattern, std::string_view name) {
  const StatusOr<NamePattern> parsed = NamePattern::parse(pattern);
  EXPECT_TRUE(parsed.ok()) << pattern << parsed.status();
  return parsed.ok() && parsed->matches(name);
}

TEST(NamePattern, ANameIsThatNameAlone) {
  EXPECT_TRUE(matches("lm_head", "lm_head"));
  EXPECT_FALSE(matches("lm_head", "lm_head2"));
  EXPECT_FALSE(matches("lm.head", "lm_head"));
  EXPECT_FALSE(matches("", "lm_head"));
  EXPECT_TRUE(matches("re", "re"));
}

TEST(NamePattern, ExpressionsMatchAsInPython) {
  struct Row {
    const char* pattern;
    const char* name;
    bool matches;
  };
  const Row rows[] = {
      {"re:", "anything", true},
      {"re:lm_head", "lm_head.x", true},
      {"re:head", "lm_head", false},
      {"re:.*head$", "lm_head", true},
      {"re:.*head$", "lm_head.x", false},
      {"re:^model\\.layers\\.\\d+\\.mlp", "model.layers.12.mlp.fc1", true},
      {"re:^model\\.layers\\.\\d+\\.mlp", "model_layers.12.mlp", false},
      {"re:.*\\.(q|k|v)_proj$", "a.b.k_proj", true},
      {"re:.*\\.(q|k|v)_proj$", "a.b.out_proj", false},
      {"re:.*\\.(?:fc1|fc2)", "x.fc2", true},
      {"re:[a-c]+x", "abcabcx", true},
      {"re:[^.]+\\.x", "ab.x", true},
      {"re:[^.]+\\.x", "a.b.x", false},
      {"re:[]x]y", "]y", true},
      {"re:[a-]y", "-y", true},
      {"re:[\\d_]+$", "1_2", true},
      {"re:\\w+\\W\\w", "ab.c", true},
      {"re:\\S\\D\\s", "ab ", true},
      {"re:a{2}$", "aa", true},
      {"re:a{2}$", "aaa", false},
      {"re:a{2,}$", "aaaa", true},
      {"re:a{1,2}$", "aaa", false},
      {"re:a{0,2}b", "aab", true},
      {"re:a*?b", "aaab", true},
      {"re:a??b", "b", true},
      {"re:(a*)*b", "aaac", false},
      {"re:(|a)b", "b", true},
      {"re:a|", "zzz", true},
      {"re:x^a", "xa", false},
      {"re:(^a|b)c", "ac", true},
      {"re:a$b", "ab", false},
      {"re:.", "\n", false},
      {"re:(a(b(c)))+d", "abcabcd", true},
  };
  for (const Row& row : rows) EXPECT_EQ(matches(row.pattern, row.name), row.matches) << row.pattern << " " << row.name;
}

TEST(NamePattern, WhatIsNotInTheSubsetIsRefused) {
  const std::pair<std::string, const char*> rows[] = {
      {"re:(?!lm_head).*", "lookaround"},
      {"re:(?<=a)b", "lookaround"},
      {"re:(?P<x>a)", "lookaround, flags or a name"},
      {"re:(?i)a", "flags"},
      {"re:(a)\\1", "\\1, which is not supported"},
      {"re:\\bfc", "\\b, which is not supported"},
      {"re:(a", "a group that does not end"},
      {"re:a)", "an unmatched )"},
      {"re:[a", "a class that does not end"},
      {"re:[z-a]", "a range"},
      {"re:*a", "a quantifier without anything before it"},
      {"re:a**", "a quantifier behind a quantifier"},
      {"re:a{2", "{ without counts"},
      {"re:a{}", "{ without counts"},
      {"re:a{3,2}", "n less than m"},
      {"re:a{99999}", "a count over"},
      {"re:a\\", "a backslash at the end"},
      {"re:((a{1000}){1000}){1000}", "steps allowed"},
      {"re:" + std::string(100, '(') + std::string(100, ')'), "nested too deep"},
      {std::string(5000, 'a'), "bytes are over"},
  };
  for (const auto& [pattern, reason] : rows) {
    const StatusOr<NamePattern> parsed = NamePattern::parse(pattern);
    ASSERT_FALSE(parsed.ok()) << pattern;
    EXPECT_THAT(error_message(parsed.status()), HasSubstr(reason)) << pattern.substr(0, 80);
  }
}

TEST(NamePattern, MatchingIsLinear) {
  const std::string name(20'000, 'a');
  // A matcher that goes back takes 2^20000 steps for each.
  for (const char* pattern : {"re:(a*)*b", "re:(a|a)*b", "re:(a+)+$b", "re:(.*)*(.*)*(.*)*x"}) {
    EXPECT_FALSE(matches(pattern, name)) << pattern;
  }
}

}  // namespace
}  // namespace transept
