#include "speech/local_agreement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_EQ(agreement.add(" And so my fell", 2), "");
  EXPECT_EQ(agreement.open(), " And so my fell");
  EXPECT_EQ(agreement.add(" and so my fellow Amer", 2), "and so my");
  EXPECT_EQ(agreement.open(), " fellow Amer");
  EXPECT_EQ(agreement.add(" And so my fellow Americans", 2), " fellow");
  EXPECT_EQ(agreement.add(" And so, my fellow Americans, ask", 2), " Americans");
  EXPECT_EQ(agreement.open(), ", ask");
  EXPECT_EQ(agreement.add(" And so, my fellow Americans, ask not", 2), ", ask");
  EXPECT_EQ(agreement.told(), "and so my fellow Americans, ask");
  EXPECT_EQ(agreement.num_told_words(), 6);
}

TEST(LocalAgreement, OneHypothesisIsEnoughIfAskedSo) {
  LocalAgreement agreement;
  EXPECT_EQ(agreement.add(" One two.", 1), "One two");
  EXPECT_EQ(agreement.add(" One two three.", 1), " three");
  EXPECT_EQ(agreement.add(" One two three.", 1), "");
}

TEST(LocalAgreement, ThreeMustAgreeWhereThreeAreAsked) {
  LocalAgreement agreement;
  EXPECT_EQ(agreement.add(" a b c", 3), "");
  EXPECT_EQ(agreement.add(" a b c", 3), "");
  EXPECT_EQ(agreement.add(" a x c d", 3), "a");
  EXPECT_EQ(agreement.add(" a x c d", 3), "");  // the third last says b
  EXPECT_EQ(agreement.add(" a x c d", 3), " x c d");
}

TEST(LocalAgreement, TheNumberMayFallOnTheWay) {
  LocalAgreement agreement;
  EXPECT_EQ(agreement.add(" a b", 3), "");
  EXPECT_EQ(agreement.add(" a b c", 3), "");
  EXPECT_EQ(agreement.add(" a b c", 2), "a b c");
}

TEST(LocalAgreement, ADisagreementBreaksTheChain) {
  LocalAgreement agreement;
  EXPECT_EQ(agreement.add(" a b", 2), "");
  EXPECT_EQ(agreement.add("", 2), "");  // heard nothing
  EXPECT_EQ(agreement.add(" a b", 2), "");
  EXPECT_EQ(agreement.add(" c", 2), "");
  EXPECT_EQ(agreement.add(" a b", 2), "");
  EXPECT_EQ(agreement.add(" a b", 2), "a b");
}

// What is told is never told again, whatever the newest hypothesis makes of it.
TEST(LocalAgreement, AToldWordThatIsHeardOtherwiseIsNotRepeated) {
  LocalAgreement agreement;
  agreement.add(" I see the see", 2);
  EXPECT_EQ(agreement.add(" I see the see today", 2), "I see the see");
  // A word came in between, and one is another.
  EXPECT_EQ(agreement.add(" I really see the see today is", 2), " today");
  EXPECT_EQ(agreement.add(" I see the sea today is calm", 2), " is");
  EXPECT_EQ(agreement.told(), "I see the see today is");
  // One told word is gone.
  EXPECT_EQ(agreement.add(" I the sea today is calm", 2), " calm");
}

TEST(LocalAgreement, RepeatedWordsAreCounted) {
  LocalAgreement agreement;
  agreement.add(" no no", 2);
  EXPECT_EQ(agreement.add(" no no no", 2), "no no");
  EXPECT_EQ(agreement.add(" no no no no", 2), " no");
  EXPECT_EQ(agreement.told(), "no no no");
}

TEST(LocalAgreement, AClosedWindowTellsAll) {
  LocalAgreement agreement;
  agreement.add(" The end", 2);
  agreement.add(" The end of it. ", 2);
  EXPECT_EQ(agreement.close_window(), " of it.");
  EXPECT_EQ(agreement.told(), "The end of it.");
  EXPECT_EQ(agreement.num_told_words(), 4);
  EXPECT_EQ(agreement.open(), "");
  EXPECT_EQ(agreement.close_window(), "");
  // The next window knows nothing of it; words are kept apart.
  EXPECT_EQ(agreement.add("And more", 2), "");
  EXPECT_EQ(agreement.add("And more of", 2), " And more");
  EXPECT_EQ(agreement.told(), "The end of it. And more");
}

TEST(LocalAgreement, NoSpaceIsPutBetweenCharacters) {
  LocalAgreement agreement;
  agreement.add("你好", 1);
  EXPECT_EQ(agreement.close_window(), "");
  EXPECT_EQ(agreement.add("世界", 1), "世界");
  EXPECT_EQ(agreement.told(), "你好世界");
}

TEST(LocalAgreement, AWindowThatIsCutKeepsWhatIsBehindTheCut) {
  LocalAgreement agreement;
  const std::string first = " One two.", second = " Three four five";
  agreement.add(first + second, 2);
  EXPECT_EQ(agreement.add(str_cat(first, " Three four fire"), 2), "One two. Three four");
  EXPECT_TRUE(agreement.is_told(first.size()));
  EXPECT_FALSE(agreement.is_told(first.size() + second.size()));
  EXPECT_EQ(agreement.cut_window(first.size()), "");
  EXPECT_EQ(agreement.open(), " fire");
  // Over the rest of the audio alone; "five" and "fire" of before the cut still count.
  EXPECT_EQ(agreement.add(" Three four fire burns", 2), " fire");
  EXPECT_EQ(agreement.add(" Three four fire burns", 2), " burns");
  EXPECT_EQ(agreement.told(), "One two. Three four fire burns");
}

TEST(LocalAgreement, ACutTellsThePunctuationBeforeIt) {
  LocalAgreement agreement;
  agreement.add(" One two! Three", 2);
  EXPECT_EQ(agreement.add(" One two! Tree", 2), "One two");
  const size_t cut = std::string_view(" One two!").size();
  ASSERT_TRUE(agreement.is_told(cut));
  EXPECT_EQ(agreement.cut_window(cut), "!");
  EXPECT_EQ(agreement.told(), "One two!");
  EXPECT_EQ(agreement.add("Tree falls", 2), " Tree");
}

// Growing prefixes of a sentence with noise at their ends: told words are a beginning of the sentence.
TEST(LocalAgreement, OfATruthThatIsHeardEverBetterABeginningIsTold) {
  std::mt19937 random(11);
  for (int run = 0; run < 200; ++run) {
    std::vector<std::string> truth;
    for (int i = 0; i < 30; ++i) truth.push_back(str_cat("w", random() % 9));
    LocalAgreement agreement;
    std::string told;
    for (size_t heard = 1; heard <= truth.size(); ++heard) {
      std::string hypothesis;
      for (size_t i = 0; i < heard; ++i) hypothesis += str_cat(" ", truth[i]);
      hypothesis += str_cat(" x", random());  // the last word is never heard twice
      told += agreement.add(hypothesis, 2);
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
