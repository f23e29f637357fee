#include "speech/local_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/strings.h"
#include "base/utf8.h"

namespace transept {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> keys(std::string_view text) {
  std::vector<std::string> keys;
  for (const HeardWord& word : split_heard(text)) keys.push_back(word.key);
  return keys;
}

std::vector<std::string> heard_up_to(std::string_view text) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (const HeardWord& word : split_heard(text)) {
    parts.emplace_back(text.substr(begin, word.end - begin));
    begin = word.end;
  }
  return parts;
}

// So many must agree, however probable the words.
std::string add(LocalAgreement& agreement, std::string text, int num_hypotheses) {
  AgreementRule rule(static_cast<size_t>(num_hypotheses), INFINITY);
  rule.back() = -INFINITY;
  return agreement.add({.text = std::move(text)}, rule);
}

TEST(SplitHeard, WordsAreComparedWithoutCaseAndPunctuation) {
  EXPECT_THAT(keys(" And so, my FELLOW \"Americans\"..."), ElementsAre("and", "so", "my", "fellow", "americans"));
  EXPECT_THAT(keys("don't  well-known 3.5 1,000"), ElementsAre("dont", "wellknown", "35", "1000"));
  EXPECT_THAT(keys("Ärger ÉTÉ ὈΔΥΣΣΕΎΣ"), ElementsAre("ärger", "été", "ὀδυσσεύσ"));
  EXPECT_THAT(keys(""), ElementsAre());
  EXPECT_THAT(keys(" - ... ♪ "), ElementsAre());
  // Punctuation alone makes no word: it stands before the next one.
  EXPECT_THAT(heard_up_to(" Yes - no. \"Ha\"!"), ElementsAre(" Yes", " - no", ". \"Ha"));
}

TEST(SplitHeard, ScriptsWithoutSpacesAreSplitAtCharacters) {
  EXPECT_THAT(keys("你好，世界。"), ElementsAre("你", "好", "世", "界"));
  EXPECT_THAT(keys("これはUTF-8です"), ElementsAre("こ", "れ", "は", "utf8", "で", "す"));
  EXPECT_THAT(heard_up_to("你好，世 A"), ElementsAre("你", "好", "，世", " A"));
  // Vowel signs and tones stay with their consonant.
  EXPECT_THAT(keys("ที่นี่"), ElementsAre("ที่", "นี่"));
  // Decomposed letters too, and scripts that write spaces are not cut by marks.
  EXPECT_THAT(keys("e\u0301te\u0301 हिन्दी"), ElementsAre("e\u0301te\u0301", "हिन्दी"));
}

TEST(SplitHeard, TakesAnyBytes) {
  EXPECT_THAT(keys("a\xff"
                   "b \xe4\xbd c"),
              ElementsAre("ab", "c"));
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    std::string text(random() % 40, '\0');
    for (char& byte : text) byte = static_cast<char>(random());
    size_t last = 0;
    for (const HeardWord& word : split_heard(text)) {
      EXPECT_FALSE(word.key.empty());
      EXPECT_GT(word.end, last);
      last = word.end;
    }
    EXPECT_LE(last, text.size());
  }
}

TEST(LocalAgreement, TellsWhatTheLastTwoAgreeOn) {
  LocalAgreement agreement;
  EXPECT_EQ(add(agreement, " And so my fell", 2), "");
  EXPECT_EQ(agreement.open(), " And so my fell");
  EXPECT_EQ(add(agreement, " and so my fellow Amer", 2), "and so my");
  EXPECT_EQ(agreement.open(), " fellow Amer");
  EXPECT_EQ(add(agreement, " And so my fellow Americans", 2), " fellow");
  EXPECT_EQ(add(agreement, " And so, my fellow Americans, ask", 2), " Americans");
  EXPECT_EQ(agreement.open(), ", ask");
  EXPECT_EQ(add(agreement, " And so, my fellow Americans, ask not", 2), ", ask");
  EXPECT_EQ(agreement.told(), "and so my fellow Americans, ask");
  EXPECT_EQ(agreement.num_told_words(), 6);
}

TEST(LocalAgreement, OneHypothesisIsEnoughIfAskedSo) {
  LocalAgreement agreement;
  EXPECT_EQ(add(agreement, " One two.", 1), "One two");
  EXPECT_EQ(add(agreement, " One two three.", 1), " three");
  EXPECT_EQ(add(agreement, " One two three.", 1), "");
}

TEST(LocalAgreement, ThreeMustAgreeWhereThreeAreAsked) {
  LocalAgreement agreement;
  EXPECT_EQ(add(agreement, " a b c", 3), "");
  EXPECT_EQ(add(agreement, " a b c", 3), "");
  EXPECT_EQ(add(agreement, " a x c d", 3), "a");
  EXPECT_EQ(add(agreement, " a x c d", 3), "");  // the third last says b
  EXPECT_EQ(add(agreement, " a x c d", 3), " x c d");
}

TEST(LocalAgreement, TheNumberMayFallOnTheWay) {
  LocalAgreement agreement;
  EXPECT_EQ(add(agreement, " a b", 3), "");
  EXPECT_EQ(add(agreement, " a b c", 3), "");
  EXPECT_EQ(add(agreement, " a b c", 2), "a b c");
}

// Each word is a token, and so is what stands before it; in front of them stands one of nothing.
HeardText with_logprobs(const std::vector<std::pair<std::string, float>>& tokens) {
  HeardText heard{.tokens = {{0, -50}}};
  for (const auto& [text, logprob] : tokens) {
    heard.text += text;
    heard.tokens.push_back({heard.text.size(), logprob});
  }
  return heard;
}

TEST(SplitHeard, AWordIsAsProbableAsItsTokensAre) {
  const HeardText heard = with_logprobs({{" Uni", -1}, {"ver", -2}, {"se", -4}, {",", -8}, {" no", -16}, {" -", -32}});
  const std::vector<HeardWord> words = split_heard(heard.text, heard.tokens);
  ASSERT_EQ(words.size(), 2u);
  EXPECT_EQ(words[0].logprob, -7);
  EXPECT_EQ(words[1].logprob, -16);
  // A token of several words is each one's; the last word has none.
  const std::vector<HeardToken> tokens = {{std::string_view("你好").size(), -1}};
  const std::vector<HeardWord> characters = split_heard("你好世", tokens);
  ASSERT_EQ(characters.size(), 3u);
  EXPECT_EQ(characters[0].logprob, -1);
  EXPECT_EQ(characters[1].logprob, -1);
  EXPECT_EQ(characters[2].logprob, 0);
}

TEST(LocalAgreement, WordsThatAreLessSureNeedMoreToAgree) {
  const AgreementRule rule = {INFINITY, -1, -2, -INFINITY};
  const auto heard = [](float first, float second) {
    return with_logprobs({{" a", first}, {" b", second}, {".", -9}});
  };
  LocalAgreement sure;
  EXPECT_EQ(sure.add(heard(0, 0), rule), "");  // one is never enough
  EXPECT_EQ(sure.add(heard(-1, -1.1f), rule), "a");
  EXPECT_EQ(sure.add(heard(-9, -2.1f), rule), "");
  EXPECT_EQ(sure.add(heard(-9, -9), rule), " b");  // the fourth
  LocalAgreement three;
  three.add(heard(-9, 0), rule);
  EXPECT_EQ(three.add(heard(-1.5f, 0), rule), "");  // b waits for a
  EXPECT_EQ(three.add(heard(-2, 0), rule), "a b");
  // How sure the earlier ones were says nothing.
  LocalAgreement newest;
  newest.add(heard(-9, -9), rule);
  EXPECT_EQ(newest.add(heard(0, 0), rule), "a b");
  // A chain that breaks begins anew: of b two agree.
  LocalAgreement broken;
  broken.add(with_logprobs({{" a", -3}, {" b", -3}}), rule);
  broken.add(with_logprobs({{" a", -3}, {" c", -3}}), rule);
  broken.add(with_logprobs({{" a", -3}, {" b", -3}}), rule);
  EXPECT_EQ(broken.add(with_logprobs({{" a", -3}, {" b", -3}}), rule), "a");
}

TEST(LocalAgreement, ADisagreementBreaksTheChain) {
  LocalAgreement agreement;
  EXPECT_EQ(add(agreement, " a b", 2), "");
  EXPECT_EQ(add(agreement, "", 2), "");  // heard nothing
  EXPECT_EQ(add(agreement, " a b", 2), "");
  EXPECT_EQ(add(agreement, " c", 2), "");
  EXPECT_EQ(add(agreement, " a b", 2), "");
  EXPECT_EQ(add(agreement, " a b", 2), "a b");
}

// What is told is never told again, whatever the newest hypothesis makes of it.
TEST(LocalAgreement, AToldWordThatIsHeardOtherwiseIsNotRepeated) {
  LocalAgreement agreement;
  add(agreement, " I see the see", 2);
  EXPECT_EQ(add(agreement, " I see the see today", 2), "I see the see");
  // A word came in between, and one is another.
  EXPECT_EQ(add(agreement, " I really see the see today is", 2), " today");
  EXPECT_EQ(add(agreement, " I see the sea today is calm", 2), " is");
  EXPECT_EQ(agreement.told(), "I see the see today is");
  // One told word is gone.
  EXPECT_EQ(add(agreement, " I the sea today is calm", 2), " calm");
}

TEST(LocalAgreement, RepeatedWordsAreCounted) {
  LocalAgreement agreement;
  add(agreement, " no no", 2);
  EXPECT_EQ(add(agreement, " no no no", 2), "no no");
  EXPECT_EQ(add(agreement, " no no no no", 2), " no");
  EXPECT_EQ(agreement.told(), "no no no");
}

TEST(LocalAgreement, AClosedWindowTellsAll) {
  LocalAgreement agreement;
  add(agreement, " The end", 2);
  add(agreement, " The end of it. ", 2);
  EXPECT_EQ(agreement.close_window(), " of it.");
  EXPECT_EQ(agreement.told(), "The end of it.");
  EXPECT_EQ(agreement.num_told_words(), 4);
  EXPECT_EQ(agreement.open(), "");
  EXPECT_EQ(agreement.close_window(), "");
  // The next window knows nothing of it; words are kept apart.
  EXPECT_EQ(add(agreement, "And more", 2), "");
  EXPECT_EQ(add(agreement, "And more of", 2), " And more");
  EXPECT_EQ(agreement.told(), "The end of it. And more");
}

TEST(LocalAgreement, NoSpaceIsPutBetweenCharacters) {
  LocalAgreement agreement;
  add(agreement, "你好", 1);
  EXPECT_EQ(agreement.close_window(), "");
  EXPECT_EQ(add(agreement, "世界", 1), "世界");
  EXPECT_EQ(agreement.told(), "你好世界");
}

TEST(LocalAgreement, AWindowThatIsCutKeepsWhatIsBehindTheCut) {
  LocalAgreement agreement;
  const std::string first = " One two.", second = " Three four five";
  add(agreement, first + second, 2);
  EXPECT_EQ(add(agreement, str_cat(first, " Three four fire"), 2), "One two. Three four");
  EXPECT_TRUE(agreement.is_told(first.size()));
  EXPECT_FALSE(agreement.is_told(first.size() + second.size()));
  EXPECT_EQ(agreement.cut_window(first.size()), "");
  EXPECT_EQ(agreement.open(), " fire");
  // Over the rest of the audio alone; "five" and "fire" of before the cut still count.
  EXPECT_EQ(add(agreement, " Three four fire burns", 2), " fire");
  EXPECT_EQ(add(agreement, " Three four fire burns", 2), " burns");
  EXPECT_EQ(agreement.told(), "One two. Three four fire burns");
}

TEST(LocalAgreement, ACutTellsThePunctuationBeforeIt) {
  LocalAgreement agreement;
  add(agreement, " One two! Three", 2);
  EXPECT_EQ(add(agreement, " One two! Tree", 2), "One two");
  const size_t cut = std::string_view(" One two!").size();
  ASSERT_TRUE(agreement.is_told(cut));
  EXPECT_EQ(agreement.cut_window(cut), "!");
  EXPECT_EQ(agreement.told(), "One two!");
  EXPECT_EQ(add(agreement, "Tree falls", 2), " Tree");
}

// Growing prefixes of a sentence with noise at their ends: told words are a beginning of the sentence.
TEST(LocalAgreement, OfATruthThatIsHeardEverBetterABeginningIsTold) {
  std::mt19937 random(11);
  for (int run = 0; run < 200; ++run) {
    std::vector<std::string> truth;
    truth.reserve(30);
    for (int i = 0; i < 30; ++i) truth.push_back(str_cat("w", random() % 9));
    LocalAgreement agreement;
    std::string told;
    for (size_t heard = 1; heard <= truth.size(); ++heard) {
      std::string hypothesis;
      for (size_t i = 0; i < heard; ++i) hypothesis += str_cat(" ", truth[i]);
      hypothesis += str_cat(" x", random());  // the last word is never heard twice
      told += add(agreement, hypothesis, 2);
      EXPECT_EQ(agreement.told(), told);
      EXPECT_EQ(agreement.num_told_words(), static_cast<int64_t>(heard) - 1);
    }
    std::string all;
    for (size_t i = 0; i + 1 < truth.size(); ++i) all += str_cat(i == 0 ? "" : " ", truth[i]);
    EXPECT_EQ(told, all);
  }
}

TEST(NumRevisedWords, CountsTheWordsThatAreNotThere) {
  EXPECT_EQ(num_revised_words("", ""), 0);
  EXPECT_EQ(num_revised_words("", "a b"), 0);
  EXPECT_EQ(num_revised_words("a b", ""), 2);
  EXPECT_EQ(num_revised_words("And so", "and so, my"), 0);
  EXPECT_EQ(num_revised_words("and sow my", "and so my fellow"), 1);
  EXPECT_EQ(num_revised_words("a b c", "a x b c d"), 1);
  EXPECT_EQ(num_revised_words("a b c", "x y"), 3);
}

}  // namespace
}  // namespace transept
