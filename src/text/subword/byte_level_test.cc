// GPT-2's alphabet and pattern, by hand-written code against the pattern itself as a regular expression.
#include "text/subword/byte_level.h"

#include <gtest/gtest.h>

#include <random>

#include "text/text_testing.h"
#include "text/unicode/regex.h"

namespace transept {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<TextRange> ranges;
  split_gpt2(text, {0, text.size()}, ranges);
  std::vector<std::string> words;
  words.reserve(ranges.size());
  for (const TextRange range : ranges) words.emplace_back(range.of(text));
  return words;
}

using WordList = std::vector<std::string>;

TEST(ByteLevelTest, SplitsAsTheReferencesExamples) {
  EXPECT_EQ(words_of("Hello my friend, how is your day going?"),
            (WordList{"Hello", " my", " friend", ",", " how", " is", " your", " day", " going", "?"}));
  EXPECT_EQ(words_of("Hello there       dear"), (WordList{"Hello", " there", "      ", " dear"}));
  EXPECT_EQ(words_of("Hello there\nHello"), (WordList{"Hello", " there", "\n", "Hello"}));
  EXPECT_EQ(words_of("we've it's 'S''d"), (WordList{"we", "'ve", " it", "'s", " '", "S", "''", "d"}));
  EXPECT_EQ(words_of("a1½ !\t "), (WordList{"a", "1½", " !", "\t "}));
  EXPECT_EQ(words_of(""), (WordList{}));
}

TEST(ByteLevelTest, SplitsAsThePatternDoes) {
  const StatusOr<Regex> regex = Regex::compile(kGpt2Pattern);
  ASSERT_TRUE(regex.ok()) << regex.status();
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    // Of scripts that are no younger than the tables of PCRE2 and utf8proc.
    std::string text;
    for (int i = 0; i < 8; ++i) append_utf8(text, static_cast<uint32_t>(random() % 0x500));
    constexpr std::string_view kPieces[] = {"'s", "'ll", " ", "  ", "\n", "'", " a", "1", "!"};
    for (int i = 0; i < 6; ++i) text += kPieces[random() % std::size(kPieces)];
    std::vector<TextRange> words;
    split_gpt2(text, {0, text.size()}, words);
    SearchBudget budget(text.size());
    EXPECT_EQ(words, *regex->find_all(text, budget)) << text;
  }
}

TEST(ByteLevelTest, EveryByteHasItsOwnPrintableCharacter) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<char>(byte));
  std::string characters;
  append_byte_characters(all, characters);
  EXPECT_TRUE(is_valid_utf8(characters));
  EXPECT_EQ(characters.find(' '), std::string::npos);
  std::string back;
  append_token_bytes(characters, back);
  EXPECT_EQ(back, all);
  std::string space;
  append_byte_characters(" \n", space);
  EXPECT_EQ(space, "ĠĊ");
}

TEST(ByteLevelTest, ATokenWithOtherCharactersIsItself) {
  std::string out = "x";
  append_token_bytes("<a b>", out);
  append_token_bytes("世", out);
  EXPECT_EQ(out, "x<a b>世");
}

}  // namespace
}  // namespace transept
