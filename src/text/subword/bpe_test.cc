// The order of merges, unknown characters, and the time that long words take. What whole tokenizers answer is held by
// fixture_test.cc.
#include "text/subword/bpe.h"

#include <gtest/gtest.h>

#include "text/text_testing.h"

namespace transept {
namespace {

StatusOr<std::unique_ptr<BpeModel>> parse(std::string_view text) {
  const StatusOr<Json> json = Json::parse(text);
  EXPECT_TRUE(json.ok()) << json.status();
  return BpeModel::parse(JsonField("model.json", *json));
}

std::vector<int32_t> ids(const BpeModel& model, std::string_view word) {
  std::vector<int32_t> out;
  EXPECT_TRUE(model.append_ids({.text = std::string(word), .ranges = {{0, word.size()}}}, out).ok());
  return out;
}

using Ids = std::vector<int32_t>;

TEST(BpeTest, MergesByRankThenFromTheLeft) {
  const auto model = parse(R"({"vocab": {"a": 0, "b": 1, "c": 2, "ab": 3, "bc": 4, "abc": 5, "aa": 6},
                               "merges": ["b c", "a b", "a bc", ["a", "a"]]})");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(ids(**model, "abc"), (Ids{5}));  // b c first, then a bc
  EXPECT_EQ(ids(**model, "abab"), (Ids{3, 3}));
  EXPECT_EQ(ids(**model, "aaa"), (Ids{6, 0}));  // from the left
  EXPECT_EQ(ids(**model, "axb"), (Ids{3}));     // no unk_token: x is left out, and leaves no gap
  EXPECT_EQ(ids(**model, ""), (Ids{}));
}

// Whether the tokens that merges make stand in order of the merges, or not, or end the vocabulary.
TEST(BpeTest, TokensOfMergesMayHaveAnyIds) {
  for (const std::string_view ids_of_merges : {R"("ab": 3, "cc": 4, "abcc": 5)", R"("ab": 9, "cc": 4, "abcc": 3)",
                                               R"("cc": 3, "abcc": 4, "ab": 5)", R"("abcc": 3, "ab": 4, "cc": 6)"}) {
    const auto model = parse(str_cat(R"({"vocab": {"a": 0, "b": 1, "c": 2, "éé": 7, "é": 8, )", ids_of_merges,
                                     R"(}, "merges": ["a b", "c c", "ab cc", "é é"]})"));
    ASSERT_TRUE(model.ok()) << model.status();
    const Vocabulary& vocabulary = (*model)->vocabulary();
    EXPECT_EQ(ids(**model, "abcc"), (Ids{*vocabulary.find("abcc")})) << ids_of_merges;
    EXPECT_EQ(ids(**model, "ccabéé"), (Ids{*vocabulary.find("cc"), *vocabulary.find("ab"), 7})) << ids_of_merges;
  }
}

// Of two ids that are spelt alike the guess may only be the one that is found.
TEST(VocabularyTest, AGuessIsNotTakenWhereTextsAreNotUnique) {
  const Vocabulary unique = Vocabulary::from_list(std::vector<std::string_view>{"a", "ab", "b"}).value();
  EXPECT_TRUE(unique.is_only_token(1, "a", "b"));
  EXPECT_TRUE(unique.is_only_token(1, "ab", ""));
  EXPECT_FALSE(unique.is_only_token(1, "a", "c"));
  EXPECT_FALSE(unique.is_only_token(0, "a", "b"));
  EXPECT_FALSE(unique.is_only_token(3, "", ""));
  EXPECT_FALSE(unique.is_only_token(-1, "", ""));
  const Vocabulary twice = Vocabulary::from_list(std::vector<std::string_view>{"a", "ab", "b", "ab"}).value();
  EXPECT_EQ(twice.find("ab"), 3);
  EXPECT_FALSE(twice.is_only_token(1, "a", "b"));
}

TEST(BpeTest, UnknownCharacters) {
  const std::string vocab = R"("vocab": {"a": 0, "<unk>": 1, "<0xC3>": 2, "<0xA9>": 3}, "merges": [])";
  const auto plain = parse(str_cat(R"({"unk_token": "<unk>", )", vocab, "}"));
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(ids(**plain, "xyaz"), (Ids{1, 1, 0, 1}));
  const auto fused = parse(str_cat(R"({"unk_token": "<unk>", "fuse_unk": true, )", vocab, "}"));
  ASSERT_TRUE(fused.ok()) << fused.status();
  EXPECT_EQ(ids(**fused, "xyaz"), (Ids{1, 0, 1}));
  const auto bytes = parse(str_cat(R"({"unk_token": "<unk>", "byte_fallback": true, )", vocab, "}"));
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(ids(**bytes, "éa世"), (Ids{2, 3, 0, 1}));
}

TEST(BpeTest, AnUnkTokenThatIsMissingIsAnErrorOfTheText) {
  const auto model = parse(R"({"unk_token": "<unk>", "vocab": {"a": 0}, "merges": []})");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(ids(**model, "aa"), (Ids{0, 0}));
  std::vector<int32_t> out;
  EXPECT_FALSE((*model)->append_ids({.text = "ab", .ranges = {{0, 2}}}, out).ok());
}

TEST(BpeTest, IgnoreMergesTakesWholeWords) {
  const auto model = parse(R"({"ignore_merges": true, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": []})");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(ids(**model, "ab"), (Ids{2}));
  EXPECT_EQ(ids(**model, "ba"), (Ids{1, 0}));
}

TEST(BpeTest, DamagedModelsNameTheField) {
  const auto message = [](std::string_view text) { return error_message(parse(text).status()); };
  EXPECT_EQ(message(R"({"vocab": {"a": 0}, "merges": ["a a"]})"),
            R"(model.json: merges[0]: "aa" is not in the vocabulary)");
  EXPECT_EQ(message(R"({"vocab": {"a": 0, "aa": 1}, "merges": ["a a", "b a"]})"),
            R"(model.json: merges[1]: "b" is not in the vocabulary)");
  EXPECT_EQ(message(R"({"vocab": {"a": 0}, "merges": ["a"]})"),
            "model.json: merges[0]: expected two tokens with one space between them");
  EXPECT_EQ(message(R"({"vocab": {"a": 0}, "merges": [["a", 1]]})"), "model.json: merges[0]: expected two tokens");
  EXPECT_EQ(message(R"({"vocab": {"a": 0}})"), "model.json: merges: is missing (expected a list)");
  EXPECT_EQ(message(R"({"merges": []})"), "model.json: vocab: is missing (expected an object)");
  EXPECT_EQ(message(R"({"vocab": {"a": -1}, "merges": []})"), "model.json: vocab.a: expected an id from 0 to 1999999");
  EXPECT_EQ(message(R"({"vocab": {"a": 2000000}, "merges": []})"),
            "model.json: vocab.a: expected an id from 0 to 1999999");
  EXPECT_EQ(message(R"({"vocab": {"a": "0"}, "merges": []})"), "model.json: vocab.a: expected an id from 0 to 1999999");
  EXPECT_EQ(message(R"({"vocab": {"a": 0, "b": 0}, "merges": []})"), "model.json: vocab: two tokens share the id 0");
  EXPECT_EQ(message(R"({"dropout": 0.1, "vocab": {}, "merges": []})"),
            "model.json: dropout: random tokenization is not supported yet");
  EXPECT_EQ(message(str_cat(R"({"vocab": {}, "merges": [], "end_of_word_suffix": ")", std::string(33, 'x'), "\"}")),
            "model.json: end_of_word_suffix: longer than 32 bytes");
  EXPECT_EQ(message(R"({"vocab": {}, "merges": [], "fuse_unk": 1})"),
            "model.json: fuse_unk: expected a boolean, found a number");
}

TEST(BpeTest, MergesTxtNamesTheLine) {
  const auto message = [](std::string_view merges) {
    return error_message(BpeModel::parse_files(R"({"a": 0, "b": 1, "ab": 2})", merges).status());
  };
  EXPECT_EQ(message("#version: 0.2\na b\n\n"), "");
  EXPECT_EQ(message("#version: 0.2\r\na b\r\n"), "");
  EXPECT_EQ(message("#version: 0.2\na b\nb a\n"), R"(merges.txt: line 3: "ba" is not in the vocabulary)");
  EXPECT_FALSE(message("\xE2 b\n").empty());  // bytes that are no character, and end the text
  EXPECT_FALSE(message("b \xC3\xE2").empty());
  EXPECT_EQ(message("a b c\n"), "merges.txt: line 1: expected two tokens with one space between them");
}

TEST(BpeTest, AMegabyteInOneWordTakesNoTime) {
  // Merges that join it all the way to 512 letters, and a word in which they all apply.
  std::string vocab = R"("a": 0, "b": 1)";
  std::string merges;
  std::string token = "a";
  for (int id = 2; id < 11; ++id) {
    merges += str_cat(merges.empty() ? "" : ", ", "[\"", token, "\", \"", token, "\"]");
    token += token;
    vocab += str_cat(", \"", token, "\": ", id);
  }
  const auto model = parse(str_cat("{\"vocab\": {", vocab, "}, \"merges\": [", merges, "]}"));
  ASSERT_TRUE(model.ok()) << model.status();
  for (const bool all_equal : {true, false}) {
    std::string word(size_t{1} << 20, 'a');
    for (size_t i = 0; !all_equal && i < word.size(); i += 7) word[i] = 'b';
    const double start = cpu_seconds();
    const Ids found = ids(**model, word);
    EXPECT_LT(cpu_seconds() - start, 2 * kSlowness);
    if (all_equal) {
      EXPECT_EQ(found, Ids(2048, 10));
    } else {
      EXPECT_GT(found.size(), 400'000u);
    }
  }
}

}  // namespace
}  // namespace transept
