// Character tables as bart-g2p's config.json has them. Expected ids follow the model's own code: a dictionary of each
// table, 3 for what is absent, nothing written for ids up to 3.
#include "text/families/character_tokenizer.h"

#include <gtest/gtest.h>

#include "text/detokenizer.h"

namespace transept {
namespace {

TokenizerHints character_hints() {
  return {.grapheme_chars = "____AIabcé'", .phoneme_chars = "____ɑbˈ", .bos_token_id = 1, .eos_token_id = 2};
}

TEST(CharacterTokenizerTest, EncodesWithTheSidesTable) {
  const auto tokenizer = CharacterTokenizer::create(character_hints());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)->encode("abé'", {}), (std::vector<int32_t>{1, 6, 7, 9, 10, 2}));
  EXPECT_EQ(*(*tokenizer)->encode("a b_\xFF", {.add_special_tokens = false}), (std::vector<int32_t>{6, 3, 7, 3, 3}));
  EXPECT_EQ(*(*tokenizer)->encode("ˈb", {.add_special_tokens = false, .side = TokenizerSide::kDecoder}),
            (std::vector<int32_t>{6, 5}));
  EXPECT_EQ(*(*tokenizer)->encode("", {}), (std::vector<int32_t>{1, 2}));
}

TEST(CharacterTokenizerTest, DecodesPhonemesAndNothingForIdsUpToThree) {
  const auto tokenizer = CharacterTokenizer::create(character_hints());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const std::vector<int32_t> ids = {1, 6, 5, 3, 4, 0, 99, -1, 2};  // 99 is outside the vocabulary
  EXPECT_EQ((*tokenizer)->decode(ids, true), "ˈbɑ");
  EXPECT_EQ((*tokenizer)->decode(ids, false), "ˈbɑ");
  IncrementalDetokenizer text(**tokenizer, std::vector<int32_t>{1}, true);
  for (const int32_t id : ids) text.append(id);
  EXPECT_EQ(text.text(), "ˈbɑ");
  for (const int32_t id : {0, 1, 2, 3}) EXPECT_TRUE((*tokenizer)->is_special(id));
  EXPECT_FALSE((*tokenizer)->is_special(4));
  EXPECT_EQ((*tokenizer)->vocab_size(), 11);
  EXPECT_EQ((*tokenizer)->token_to_string(6), "ˈ");
  EXPECT_EQ((*tokenizer)->side_token_to_string(6, TokenizerSide::kEncoder), "a");
  EXPECT_EQ((*tokenizer)->string_to_token("ɑ"), 4);
  EXPECT_FALSE((*tokenizer)->string_to_token("ɑb").has_value());
}

TEST(CharacterTokenizerTest, DamagedTablesAreNamed) {
  const auto message = [](const TokenizerHints& damaged) {
    return error_message(CharacterTokenizer::create(damaged).status());
  };
  EXPECT_EQ(message({.phoneme_chars = "____a"}), "config.json: grapheme_chars: is missing");
  EXPECT_EQ(message({.grapheme_chars = "____a"}), "config.json: phoneme_chars: is missing");
  EXPECT_EQ(message({.grapheme_chars = Json::array(), .phoneme_chars = "____a"}),
            "config.json: grapheme_chars: expected a string of characters, got a list");
  EXPECT_EQ(message({.grapheme_chars = "____a", .phoneme_chars = 7}),
            "config.json: phoneme_chars: expected a string of characters, got a number");
  for (const auto& [table, count] : {std::pair("", 0), std::pair("abc", 3), std::pair("____", 4)}) {
    const std::string why = str_cat(": has ", count, " characters, and none behind the 4 of the special tokens");
    EXPECT_EQ(message({.grapheme_chars = table, .phoneme_chars = "____a"}), "config.json: grapheme_chars" + why);
    EXPECT_EQ(message({.grapheme_chars = "____a", .phoneme_chars = table}), "config.json: phoneme_chars" + why);
  }
  EXPECT_EQ(message({.grapheme_chars = "____\xFF", .phoneme_chars = "____a"}),
            "config.json: grapheme_chars: is not valid UTF-8");
}

TEST(CharacterTokenizerTest, TablesAreMeasuredAgainstTheVocabulary) {
  const auto create = [](int64_t vocab_size) {
    TokenizerHints sized = character_hints();
    sized.vocab_size = vocab_size;
    return CharacterTokenizer::create(sized);
  };
  EXPECT_EQ(error_message(create(10).status()),
            "config.json: grapheme_chars: has 11 characters, more than the vocabulary of 10");
  EXPECT_EQ(error_param(create(10).status()), "grapheme_chars");
  EXPECT_EQ(error_message(
                CharacterTokenizer::create({.vocab_size = 6, .grapheme_chars = "____ab", .phoneme_chars = "____abc"})
                    .status()),
            "config.json: phoneme_chars: has 7 characters, more than the vocabulary of 6");
  EXPECT_TRUE(create(11).ok());
  const auto tokenizer = create(63);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ((*tokenizer)->vocab_size(), 63);
}

TEST(CharacterTokenizerTest, AnIdWithoutACharacterIsSeenInTheText) {
  TokenizerHints sized = character_hints();
  sized.vocab_size = 63;
  const auto tokenizer = CharacterTokenizer::create(sized);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  // The phonemes' table ends at 6, the graphemes' at 10, the vocabulary at 62.
  EXPECT_EQ((*tokenizer)->decode(std::vector<int32_t>{4, 7, 10, 62, 5, 63}, true), "ɑ\uFFFD\uFFFD\uFFFDb");
  EXPECT_EQ((*tokenizer)->token_to_string(62), "");
}

}  // namespace
}  // namespace transept
