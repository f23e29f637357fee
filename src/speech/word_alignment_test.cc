#include "speech/word_alignment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "speech/speech_testing.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using testing::integer;
using testing::list;
using testing::member;
using testing::text;

TEST(WordSplitTest, WordsAreTheReferences) {
  const std::vector<Json> fixtures = testing::read_fixtures("split.jsonl");
  ASSERT_GT(fixtures.size(), 30u);
  for (const Json& fixture : fixtures) {
    const testing::TokenTable table(list(fixture, "tokens"));
    const std::vector<TokenWord> words = split_words(
        table.ids, [&](int32_t id, std::string& out) { table.append(id, out); }, word_split(text(fixture, "language")));
    Json::Array actual;
    for (const TokenWord& word : words) actual.emplace_back(Json::Array{word.word, uint64_t{word.tokens.size()}});
    EXPECT_EQ(Json(actual).dump(), member(fixture, "words").dump());
  }
}

std::vector<std::string> pieces_of(const std::vector<std::string>& tokens) {
  std::vector<int32_t> ids(tokens.size());
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
  std::vector<std::string> pieces;
  for (const TokenWord& word : split_words(
           ids, [&](int32_t id, std::string&out) { out += tokens[id]; }, WordSplit::kCharacters)) {
    pieces.push_back(word.word);
  }
  return pieces;
}

TEST(WordSplitTest, ACharacterThatIsNeverCompletedIsOneWord) {
  constexpr const char* kBad = "\xEF\xBF\xBD";
  EXPECT_THAT(pieces_of({"\xF0", "\x9F", " a", "b"}), ElementsAre(kBad, " a", "b"));
  EXPECT_THAT(pieces_of({"a", "\xE3", "\x81"}), ElementsAre("a", kBad));
  EXPECT_THAT(pieces_of({"\xE3", "\x81", "\x82", ""}), ElementsAre("あ", ""));
  EXPECT_THAT(pieces_of({}), ElementsAre());
}

TEST(TimeWarpingTest, PathsAreTheReferencesWhereCostsAreEqualToo) {
  const std::vector<Json> fixtures = testing::read_fixtures("warping.jsonl");
  ASSERT_GT(fixtures.size(), 50u);
  for (const Json& fixture : fixtures) {
    std::vector<float> costs;
    for (const Json& row : list(fixture, "costs")) {
      for (const Json& cost : row.as_array()) costs.push_back(static_cast<float>(cost.as_double()));
    }
    const auto rows = static_cast<int64_t>(list(fixture, "costs").size());
    const WarpingPath path = dynamic_time_warping(costs, rows, static_cast<int64_t>(costs.size()) / rows);
    EXPECT_EQ(path.rows, testing::ids_of(member(fixture, "rows"))) << fixture.dump();
    EXPECT_EQ(path.columns, testing::ids_of(member(fixture, "columns"))) << fixture.dump();
  }
}

TEST(TimeWarpingTest, CostsThatAreNoNumberGiveAPathAllTheSame) {
  const std::vector<float> costs(12, std::numeric_limits<float>::quiet_NaN());
  const WarpingPath path = dynamic_time_warping(costs, 3, 4);
  EXPECT_EQ(path.rows.front(), 0);
  EXPECT_EQ(path.rows.back(), 2);
  EXPECT_EQ(path.columns.back(), 3);
  for (size_t i = 1; i < path.rows.size(); ++i) EXPECT_LE(path.rows[i] - path.rows[i - 1], 1);
  EXPECT_TRUE(dynamic_time_warping({}, 0, 4).rows.empty());
}

// What weights() of tools/make_speech_fixtures.py makes, each row divided by its sum.
std::vector<float> attention_of(uint64_t seed, int64_t heads, int64_t tokens, int64_t positions) {
  std::vector<float> attention;
  uint64_t state = seed;
  std::vector<double> row(positions);
  for (int64_t i = 0; i < heads * tokens; ++i) {
    double sum = 0;
    for (int64_t p = 0; p < positions; ++p) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      const bool near = std::abs(p * tokens - i % tokens * positions) < 2 * positions;
      row[p] = static_cast<double>((state >> 33) % 1000 + 1) * (near ? 30 : 1);
      sum += row[p];
    }
    for (const double weight : row) attention.push_back(static_cast<float>(weight / sum));
  }
  return attention;
}

TEST(WordAlignmentTest, WordsAndTimesAreTheReferences) {
  const std::vector<Json> fixtures = testing::read_fixtures("alignment.jsonl");
  ASSERT_GT(fixtures.size(), 20u);
  for (const Json& fixture : fixtures) {
    SCOPED_TRACE(fixture.dump());
    const testing::TokenTable table(list(fixture, "tokens"));
    std::vector<float> probabilities;
    for (const Json& p : list(fixture, "probabilities")) probabilities.push_back(static_cast<float>(p.as_double()));
    const int64_t heads = integer(fixture, "heads"), positions = integer(fixture, "positions");
    const int64_t prefix = integer(fixture, "prefix"), tokens = prefix + 2 + static_cast<int64_t>(table.ids.size());
    const std::vector<float> attention =
        attention_of(static_cast<uint64_t>(integer(fixture, "seed")), heads, tokens, positions);
    const auto words = align_words(
        {.attention = attention,
         .num_heads = heads,
         .num_tokens = tokens,
         .num_positions = positions,
         .num_prefix_tokens = prefix,
         .num_frames = integer(fixture, "frames"),
         .text_tokens = table.ids,
         .probabilities = probabilities},
        [&](int32_t id, std::string& out) { table.append(id, out); }, word_split(text(fixture, "language")));
    ASSERT_TRUE(words.ok()) << words.status();
    const std::vector<WordTiming> expected = testing::timings_of(list(fixture, "words"), table.ids);
    ASSERT_EQ(words->size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ((*words)[i].word, expected[i].word);
      EXPECT_EQ((*words)[i].tokens, expected[i].tokens);
      EXPECT_EQ((*words)[i].start, expected[i].start) << expected[i].word;
      EXPECT_EQ((*words)[i].end, expected[i].end) << expected[i].word;
      EXPECT_NEAR((*words)[i].probability, expected[i].probability, 1e-6);
    }
  }
}

class OddAlignmentTest : public ::testing::Test {
 protected:
  AlignmentInput input() const {
    return {.attention = attention_,
            .num_heads = 2,
            .num_tokens = 6,
            .num_positions = 10,
            .num_prefix_tokens = 2,
            .num_frames = 20,
            .text_tokens = tokens_,
            .probabilities = probabilities_};
  }
  StatusOr<std::vector<WordTiming>> align(const AlignmentInput& input) const {
    return align_words(
        input, [](int32_t id, std::string& out) { out += str_cat(" ", id); }, WordSplit::kSpaces);
  }

  std::vector<int32_t> tokens_ = {5, 6};
  std::vector<float> probabilities_ = {0.5f, 0.25f};
  std::vector<float> attention_ = attention_of(1, 2, 6, 10);
};

TEST_F(OddAlignmentTest, AttentionThatIsNoNumberStaysWithinTheWindow) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(), 0.0f}) {
    attention_.assign(attention_.size(), bad);
    probabilities_ = {bad, -1};
    const auto words = align(input());
    ASSERT_TRUE(words.ok()) << words.status();
    ASSERT_EQ(words->size(), 2u);
    double last = 0;
    for (const WordTiming& word : *words) {
      EXPECT_GE(word.start, last);
      EXPECT_GE(word.end, word.start);
      EXPECT_LE(word.end, 0.2);
      EXPECT_TRUE(word.probability >= 0 && word.probability <= 1) << word.probability;
      last = word.start;
    }
  }
}

TEST_F(OddAlignmentTest, NothingGivesNoWords) {
  AlignmentInput none = input();
  none.num_frames = 1;
  EXPECT_TRUE(align(none)->empty());
  none = input();
  none.text_tokens = {};
  none.probabilities = {};
  none.num_prefix_tokens = 4;
  EXPECT_TRUE(align(none)->empty());
}

TEST_F(OddAlignmentTest, SizesThatDoNotFitAreErrors) {
  EXPECT_TRUE(align(input()).ok());
  const auto refuses = [&](auto change) {
    AlignmentInput wrong = input();
    change(wrong);
    EXPECT_FALSE(align(wrong).ok());
  };
  refuses([](AlignmentInput& i) { i.num_heads = 0; });
  refuses([](AlignmentInput& i) { i.num_heads = 3; });
  refuses([](AlignmentInput& i) { i.num_tokens = 7; });
  refuses([](AlignmentInput& i) { i.num_positions = int64_t{1} << 62; });
  refuses([](AlignmentInput& i) { i.num_prefix_tokens = 1; });
  refuses([](AlignmentInput& i) { i.num_frames = -1; });
  refuses([](AlignmentInput& i) { i.probabilities = i.probabilities.first(1); });
}

}  // namespace
}  // namespace transept
