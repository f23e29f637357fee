// Character tables as bart-g2p's config.json has them. Expected ids follow the model's own code: a dictionary of each
// table, 3 for what is absent, nothing written for ids up to 3.
#include "text/character_tokenizer.h"

#include <gtest/gtest.h>

#include "text/detokenizer.h"

namespace transept {
namespace {

TokenizerHints hints() {
  return {.grapheme_chars = "____AIabcé'", .phoneme_chars = "____ɑbˈ", .bos_token_id = 1, .eos_token_id = 2};
}

TEST(CharacterTokenizerTest, EncodesWithTheSidesTable) {
  const auto tokenizer = CharacterTokenizer::create(hints());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(*(*tokenizer)->encode("abé'", {}), (std::vector<int32_t>{1, 6, 7, 9, 10, 2}));
  EXPECT_EQ(*(*tokenizer)->encode("a b_\xFF", {.add_special_tokens = false}), (std::vector<int32_t>{6, 3, 7, 3, 3}));
  EXPECT_EQ(*(*tokenizer)->encode("ˈb", {.add_special_tokens = false, .side = TokenizerSide::kDecoder}),
            (std::vector<int32_t>{6, 5}));
  EXPECT_EQ(*(*tokenizer)->encode("", {}), (std::vector<int32_t>{1, 2}));
}

TEST(CharacterTokenizerTest, DecodesPhonemesAndNothingForIdsUpToThree) {
  const auto tokenizer = CharacterTokenizer::create(hints());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const std::vector<int32_t> ids = {1, 6, 5, 3, 4, 0, 99, -1, 2};
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
  EXPECT_EQ(message({.phoneme_chars = "____a"}), "config.json: grapheme_chars is missing");
  EXPECT_EQ(message({.grapheme_chars = "____a"}), "config.json: phoneme_chars is missing");
  EXPECT_EQ(message({.grapheme_chars = "abc", .phoneme_chars = "____a"}),
            "config.json: grapheme_chars has fewer than the 4 characters of the special tokens");
  EXPECT_EQ(message({.grapheme_chars = "____\xFF", .phoneme_chars = "____a"}),
            "config.json: grapheme_chars is not valid UTF-8");
}

}  // namespace
}  // namespace transept
