#include "text/subword/word_piece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

StatusOr<std::unique_ptr<WordPieceModel>> model_of(const std::string& members) {
  const Json json = Json::parse(str_cat("{", members, "}")).value();
  return WordPieceModel::parse(JsonField("tokenizer.json", json));
}

constexpr const char* kVocab = R"("vocab": {"[UNK]": 0, "un": 1, "##aff": 2, "##able": 3, "una": 4, "##ffab": 5,
                                            "##le": 6, "##a": 7, "é": 8, "##é": 9, "##": 10, "a": 11, "##ab": 12})";

std::vector<int32_t> ids_of(const std::string& members, std::string text) {
  const auto model = model_of(members);
  EXPECT_TRUE(model.ok()) << model.status();
  std::vector<int32_t> ids;
  const size_t size = text.size();
  const Words words{.text = std::move(text), .ranges = {{0, size}}};
  EXPECT_TRUE((*model)->append_ids(words, ids).ok());
  return ids;
}

// The longest piece is taken at each place, though a shorter one may leave a better rest.
TEST(WordPiece, TakesTheLongestPieceAtEachPlace) {
  EXPECT_THAT(ids_of(kVocab, "unaffable"), ElementsAre(4, 5, 6));
  EXPECT_THAT(ids_of(kVocab, "unable"), ElementsAre(0));  // una + "ble", of which nothing begins
  EXPECT_THAT(ids_of(kVocab, "aab"), ElementsAre(11, 12));
  EXPECT_THAT(ids_of(kVocab, "éé"), ElementsAre(8, 9));
}

TEST(WordPiece, AWordThatCannotBeCutWholeIsUnknown) {
  EXPECT_THAT(ids_of(kVocab, "unaffx"), ElementsAre(0));
  EXPECT_THAT(ids_of(kVocab, "x"), ElementsAre(0));
  // The prefix alone is no piece behind another, but it is one at the front.
  EXPECT_THAT(ids_of(kVocab, "##"), ElementsAre(10));
  EXPECT_THAT(ids_of(kVocab, "un##"), ElementsAre(0));
  EXPECT_THAT(ids_of(kVocab, "##able"), ElementsAre(3));
}

TEST(WordPiece, CountsCharactersNotBytes) {
  const std::string two = str_cat(kVocab, R"(, "max_input_chars_per_word": 2)");
  EXPECT_THAT(ids_of(two, "éé"), ElementsAre(8, 9));
  EXPECT_THAT(ids_of(two, "ééé"), ElementsAre(0));
  std::string hundred, more;
  for (int i = 0; i < 100; ++i) hundred += "a";
  EXPECT_EQ(ids_of(kVocab, hundred).size(), 100u);
  EXPECT_THAT(ids_of(kVocab, hundred + "a"), ElementsAre(0));
}

TEST(WordPiece, HasItsOwnPrefixAndUnknownToken) {
  const std::string own = R"("vocab": {"?": 0, "a": 1, "@b": 2}, "unk_token": "?", "continuing_subword_prefix": "@")";
  EXPECT_THAT(ids_of(own, "ab"), ElementsAre(1, 2));
  EXPECT_THAT(ids_of(own, "b"), ElementsAre(0));
  const std::string none = R"("vocab": {"[UNK]": 0, "a": 1, "b": 2}, "continuing_subword_prefix": "")";
  EXPECT_THAT(ids_of(none, "abba"), ElementsAre(1, 2, 2, 1));
  EXPECT_THAT(ids_of(none, ""), IsEmpty());
}

TEST(WordPiece, WithoutAnUnknownTokenItIsAnError) {
  const auto model = model_of(R"("vocab": {"a": 1})");
  ASSERT_TRUE(model.ok()) << model.status();
  std::vector<int32_t> ids;
  const Words words{.text = "b", .ranges = {{0, 1}}};
  EXPECT_THAT(std::string((*model)->append_ids(words, ids).message()), HasSubstr("no unk_token"));
}

TEST(WordPiece, WhatIsWrongIsNamed) {
  EXPECT_THAT(std::string(model_of(R"("unk_token": "x")").status().message()), HasSubstr("vocab"));
  EXPECT_THAT(std::string(model_of(str_cat(kVocab, R"(, "max_input_chars_per_word": -1)")).status().message()),
              HasSubstr("max_input_chars_per_word"));
  const std::string longest(WordPieceModel::kMaxPieceBytes + 1, 'a');
  EXPECT_THAT(std::string(model_of(str_cat(R"("vocab": {")", longest, R"(": 0})")).status().message()),
              HasSubstr("1025 bytes"));
}

}  // namespace
}  // namespace transept
