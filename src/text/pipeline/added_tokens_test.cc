// How added tokens are found: leftmost, then longest; the rules about their neighbours; and the ids that they get.
#include "text/pipeline/added_tokens.h"

#include <gtest/gtest.h>

#include "text/subword/token_matcher.h"
#include "text/text_testing.h"

namespace transept {
namespace {

Vocabulary vocabulary(std::string_view text) {
  const StatusOr<Json> json = Json::parse(text);
  EXPECT_TRUE(json.ok());
  auto parsed = Vocabulary::parse(JsonField("vocab.json", *json));
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return std::move(parsed).value();
}

std::vector<std::string> segments(const AddedTokens& tokens, std::string_view text) {
  std::vector<AddedTokens::Segment> found;
  tokens.split_raw(text, found);
  std::vector<std::string> shown;
  shown.reserve(found.size());
  for (const AddedTokens::Segment& segment : found) {
    shown.push_back(segment.token_id == AddedTokens::kText ? std::string(segment.range.of(text))
                                                           : str_cat(segment.token_id, ":", segment.range.of(text)));
  }
  return shown;
}

using Shown = std::vector<std::string>;

TEST(TokenMatcherTest, LeftmostThenLongest) {
  const TokenMatcher matcher({{"b", 0}, {"abcd", 1}, {"ab", 2}, {"", 3}, {"ab", 4}, {"bcde", 5}});
  const auto match = matcher.find("xxabcde", 0);
  ASSERT_TRUE(match.has_value());
  EXPECT_EQ(match->value, 1);
  EXPECT_EQ(match->range, (TextRange{2, 6}));
  EXPECT_EQ(matcher.find("xxabce", 0)->value, 2);  // of two equal patterns the first
  EXPECT_EQ(matcher.find("xxabce", 3)->value, 0);
  EXPECT_FALSE(matcher.find("xxac", 0).has_value());
  EXPECT_FALSE(matcher.find("ab", 2).has_value());
  EXPECT_FALSE(TokenMatcher().find("ab", 0).has_value());
}

TEST(AddedTokensTest, RulesAboutNeighbours) {
  const Vocabulary vocab = vocabulary(R"({"a": 0})");
  AddedTokens tokens;
  ASSERT_TRUE(tokens.add({.content = "[L]", .lstrip = true}, vocab).ok());
  ASSERT_TRUE(tokens.add({.content = "[R]", .rstrip = true}, vocab).ok());
  ASSERT_TRUE(tokens.add({.content = "word", .single_word = true}, vocab).ok());
  ASSERT_TRUE(tokens.finish(Normalizer()).ok());
  EXPECT_EQ(segments(tokens, "x  [L]  y"), (Shown{"x", "1:  [L]", "  y"}));
  EXPECT_EQ(segments(tokens, "x  [R] \u3000y"), (Shown{"x  ", "2:[R] \u3000", "y"}));
  EXPECT_EQ(segments(tokens, "[R]  [L]"), (Shown{"2:[R]  ", "1:[L]"}));  // the spaces are gone already
  EXPECT_EQ(segments(tokens, "word words sword word. éword"), (Shown{"3:word", " words sword ", "3:word", ". éword"}));
  EXPECT_EQ(segments(tokens, ""), (Shown{}));
}

TEST(AddedTokensTest, TokensInsideWhiteSpaceTakeLinearTime) {
  const Vocabulary vocab = vocabulary("{}");
  AddedTokens tokens;
  ASSERT_TRUE(tokens.add({.content = "\t", .lstrip = true, .rstrip = true}, vocab).ok());
  ASSERT_TRUE(tokens.finish(Normalizer()).ok());
  const std::string text(300'000, '\t');
  std::vector<AddedTokens::Segment> found;
  const double start = cpu_seconds();
  tokens.split_raw(text, found);
  EXPECT_LT(cpu_seconds() - start, 2 * kSlowness);
  EXPECT_EQ(found.size(), text.size());
  for (const AddedTokens::Segment& segment : found) ASSERT_LE(segment.range.begin, segment.range.end);
}

// Few long tokens may take as long as their bytes allow. It depends on the machine how many take longer than a byte for
// each token would allow.
TEST(AddedTokensTest, TheTimeOfAllIsThatOfTheirBytes) {
  const auto step = Json::parse(R"-({"type": "Replace", "pattern": {"Regex": "x(?=x*)"}, "content": ""})-");
  ASSERT_TRUE(step.ok());
  const auto normalizer = Normalizer::parse(JsonField("tokenizer.json", *step));
  ASSERT_TRUE(normalizer.ok()) << normalizer.status();
  const Vocabulary vocab = vocabulary("{}");
  const std::string filling(AddedTokens::kMaxBytes - 8, 'x');
  for (int num_tokens = 1000;; num_tokens *= 2) {
    ASSERT_LT(num_tokens, 1 << 20) << "no machine is this fast";
    AddedTokens tokens;
    for (int i = 0; i < num_tokens; ++i) {
      ASSERT_TRUE(tokens.add({.content = str_cat(filling, i), .normalized = true}, vocab).ok());
    }
    const double begin = cpu_seconds();
    const Status status = tokens.finish(*normalizer);
    const double seconds = cpu_seconds() - begin;
    ASSERT_TRUE(status.ok()) << num_tokens << " tokens, " << seconds << " s: " << status;
    if (seconds > 0.6 + 4e-6 * num_tokens) break;
  }
}

TEST(AddedTokensTest, IdsComeFromTheVocabularyOrFollowIt) {
  const Vocabulary vocab = vocabulary(R"({"a": 0, "<s>": 1, "b": 2})");
  AddedTokens tokens;
  EXPECT_TRUE(tokens.add({.content = "<s>", .special = true}, vocab).ok());
  EXPECT_TRUE(tokens.add({.content = "x"}, vocab).ok());
  EXPECT_TRUE(tokens.add({.content = "y"}, vocab, 7).ok());
  EXPECT_TRUE(tokens.add({.content = "z"}, vocab).ok());
  EXPECT_TRUE(tokens.add({.content = ""}, vocab).ok());
  EXPECT_EQ(tokens.find("<s>"), 1);
  EXPECT_EQ(tokens.find("x"), 3);
  EXPECT_EQ(tokens.find("y"), 7);
  EXPECT_EQ(tokens.find("z"), 8);
  EXPECT_EQ(tokens.end_id(), 9);
  EXPECT_FALSE(tokens.add({.content = "v"}, vocab, 2).ok());
  EXPECT_FALSE(tokens.add({.content = "w"}, vocab, 7).ok());
  EXPECT_FALSE(tokens.add({.content = std::string(2000, 'x')}, vocab).ok());
  ASSERT_TRUE(tokens.add({.content = "<s>", .lstrip = true}, vocab).ok());  // new rules, still special
  EXPECT_TRUE(tokens.find(1)->lstrip);
  EXPECT_TRUE(tokens.find(1)->special);
}

TEST(AddedTokens, PointsInTimeAreSpecialWhateverTheFileSays) {
  for (const char* content : {"<|0.00|>", "<|29.98|>", "<|7.5|>"}) EXPECT_TRUE(is_timestamp_token(content)) << content;
  for (const char* content : {"<|0|>", "<|.5|>", "<|1.|>", "<|1.2.3|>", "<|en|>", "<|1.0", "1.0", "<|-1.0|>", ""}) {
    EXPECT_FALSE(is_timestamp_token(content)) << content;
  }
}

}  // namespace
}  // namespace transept
