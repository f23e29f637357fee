#include "speech/word_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "speech/speech_testing.h"

namespace transept {
namespace {

using testing::integer;
using testing::list;
using testing::member;
using testing::number;

TEST(WordTimesTest, WordsAndBordersOfSegmentsAreTheReferences) {
  const std::vector<Json> fixtures = testing::read_fixtures("words.jsonl");
  ASSERT_GT(fixtures.size(), 50u);
  for (const Json& fixture : fixtures) {
    SCOPED_TRACE(fixture.dump());
    std::vector<Segment> segments;
    for (const Json& json : list(fixture, "segments")) {
      Segment& segment = segments.emplace_back();
      segment.seek = integer(json, "seek");
      segment.start = number(json, "start");
      segment.end = number(json, "end");
      segment.tokens = testing::ids_of(member(json, "tokens"));
    }
    const WordTimesOptions options = {.end_of_text = static_cast<int32_t>(integer(fixture, "end_of_text")),
                                      .last_speech_timestamp = number(fixture, "last_speech_timestamp")};
    add_word_times(
        testing::timings_of(list(fixture, "alignment"), testing::ids_of(member(fixture, "alignment_tokens"))), options,
        segments);
    const Json::Array& expected = list(fixture, "words");
    ASSERT_EQ(segments.size(), expected.size());
    for (size_t i = 0; i < segments.size(); ++i) {
      SCOPED_TRACE(str_cat("segment ", i));
      const Json::Array& row = expected[i].as_array();
      EXPECT_EQ(segments[i].start, row[0].as_double());
      EXPECT_EQ(segments[i].end, row[1].as_double());
      testing::expect_words(segments[i].words, testing::words_of(row[2].as_array()));
    }
  }
}

TEST(MergePunctuationsTest, MarksGoToTheirWordsAndLeaveNothing) {
  std::vector<WordTiming> words;
  for (const char* word : {" (", "\"", "well", ",", "\"", " so", " -", " on", "..."}) {
    words.push_back({.word = word, .tokens = {static_cast<int32_t>(words.size())}});
  }
  merge_punctuations(words, kPrependPunctuations, kAppendPunctuations);
  std::vector<std::string> texts;
  texts.reserve(words.size());
  for (const WordTiming& word : words) texts.push_back(word.word);
  EXPECT_THAT(texts, ::testing::ElementsAre("", " (\"", "well,\"", "", "", " so", "", " - on", "..."));
  EXPECT_THAT(words[2].tokens, ::testing::ElementsAre(2, 3, 4));
}

TEST(WordTimesTest, SegmentsWithoutWordsKeepTheirTimes) {
  std::vector<Segment> segments = {{.seek = 100, .start = 1, .end = 2, .tokens = {9}}};
  add_word_times({}, {.end_of_text = 5}, segments);
  EXPECT_TRUE(segments[0].words.empty());
  EXPECT_EQ(segments[0].end, 2);
  add_word_times({{.word = " a", .tokens = {1}}}, {.end_of_text = 5}, {});
}

// openai-whisper: `segment["end"] + 0.5 < words[-1]["end"]`.
TEST(WordTimesTest, AWordHalfASecondBehindItsSegmentMovesTheSegment) {
  const auto segment_of = [](double word_end) {
    std::vector<Segment> segments = {{.start = 1, .end = 2, .tokens = {1}}};
    add_word_times({{.word = " a", .tokens = {1}, .start = 1, .end = word_end}}, {.end_of_text = 5}, segments);
    return segments[0];
  };
  EXPECT_EQ(segment_of(2.5).end, 2.5);
  EXPECT_EQ(segment_of(2.5).words.back().end, 2.5);
  EXPECT_EQ(segment_of(2.75).end, 2);
  EXPECT_EQ(segment_of(2.75).words.back().end, 2);
}

}  // namespace
}  // namespace transept
