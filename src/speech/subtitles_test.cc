#include "speech/subtitles.h"

#include <gtest/gtest.h>

#include <algorithm>

#include <limits>

#include "speech/compression_ratio.h"
#include "speech/speech_testing.h"
#include "speech/timestamp_text.h"

namespace transept {
namespace {

using testing::integer;
using testing::list;
using testing::member;
using testing::text;

TranscriptFormat format_of(std::string_view extension) {
  const auto found = std::ranges::find(kTranscriptFormats, extension, transcript_extension);
  CHECK(found != std::end(kTranscriptFormats), "no format ", extension);
  return *found;
}

SubtitleOptions options_of(const Json& json) {
  const auto limit = [&](const char* name) { return json.find(name) == nullptr ? 0 : integer(json, name); };
  const Json* highlight = json.find("highlight_words");
  return {.max_line_width = limit("max_line_width"),
          .max_line_count = limit("max_line_count"),
          .max_words_per_line = limit("max_words_per_line"),
          .highlight_words = highlight != nullptr && highlight->as_bool()};
}

TEST(SubtitlesTest, FilesAreTheReferencesByteForByte) {
  const std::vector<Json> fixtures = testing::read_fixtures("writers.jsonl");
  ASSERT_GT(fixtures.size(), 40u);
  for (const Json& fixture : fixtures) {
    const Transcript transcript = testing::transcript_of(member(fixture, "transcript"));
    const SubtitleOptions options = options_of(member(fixture, "options"));
    for (const char* extension : {"txt", "vtt", "srt", "tsv"}) {
      EXPECT_EQ(write_transcript(transcript, format_of(extension), options), text(fixture, extension))
          << extension << " of " << fixture.dump();
    }
  }
}

TEST(SubtitlesTest, GoldenFilesOfRealTranscripts) {
  const std::filesystem::path folder = testing::shared_folder() / "golden" / "audio";
  if (!std::filesystem::exists(folder / "writers.jsonl")) GTEST_SKIP() << "no shared goldens beside the repository";
  int num_files = 0;
  for (const Json& row : testing::read_json_lines(folder / "writers.jsonl")) {
    const std::filesystem::path dir = folder / text(row, "dir");
    const auto result = read_file((dir / "result.json").string());
    ASSERT_TRUE(result.ok()) << result.status();
    Transcript transcript = testing::transcript_of(testing::parse_json(*result));
    for (const Json& format : list(row, "formats")) {
      const std::string stem = std::filesystem::path(text(row, "audio")).stem().string();
      const auto expected = read_file((dir / (stem + "." + format.as_string())).string());
      ASSERT_TRUE(expected.ok()) << expected.status();
      EXPECT_EQ(write_transcript(transcript, format_of(format.as_string()), options_of(member(row, "options"))),
                *expected)
          << text(row, "id") << " " << format.as_string();
      ++num_files;
    }
    // Our JSON read back is the reference's.
    EXPECT_EQ(testing::parse_json(write_transcript(transcript, TranscriptFormat::kJson)).dump(),
              testing::parse_json(*result).dump());
  }
  EXPECT_GT(num_files, 30);
}

TEST(SubtitlesTest, JsonHasTheReferencesKeysInOrder) {
  Segment segment = {.id = 3, .seek = 3000, .start = 30.5, .end = 31, .text = " Hé", .tokens = {50364, 7}};
  segment.no_speech_prob = std::numeric_limits<double>::quiet_NaN();
  segment.words = {{" Hé", 30.5, 31, 0.25}};
  const Transcript transcript = {.text = " Hé", .language = "fr", .segments = {segment}, .has_words = true};
  EXPECT_EQ(write_transcript(transcript, TranscriptFormat::kJson),
            R"({"text": " Hé", "segments": [{"id": 3, "seek": 3000, "start": 30.5, "end": 31.0, "text": " Hé", )"
            R"("tokens": [50364, 7], "temperature": 0.0, "avg_logprob": 0.0, "compression_ratio": 0.0, )"
            R"("no_speech_prob": null, "words": [{"word": " Hé", "start": 30.5, "end": 31.0, "probability": 0.25}]}], )"
            R"("language": "fr"})");
}

TEST(SubtitlesTest, TimestampsRoundHalfToEvenAndCarry) {
  EXPECT_EQ(format_timestamp(3599.9996, false, '.'), "01:00:00.000");
  EXPECT_EQ(format_timestamp(59.9994, false, '.'), "00:59.999");
  EXPECT_EQ(format_timestamp(0.0005, true, ','), "00:00:00,000");
  EXPECT_EQ(format_timestamp(0.0015, true, ','), "00:00:00,002");
  EXPECT_EQ(format_timestamp(360000, true, ','), "100:00:00,000");
}

TEST(SubtitlesTest, TimesThatAreNoneAreZero) {
  for (const double bad : {-1.0, std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::infinity()}) {
    EXPECT_EQ(format_timestamp(bad, false, '.'), "00:00.000");
  }
  EXPECT_FALSE(format_timestamp(std::numeric_limits<double>::infinity(), false, '.').empty());
}

TEST(SubtitlesTest, BytesThatAreNoTextAreReplaced) {
  const Transcript transcript = {.segments = {{.start = 0, .end = 1, .text = "a\xFF\xE3"}}};
  EXPECT_EQ(write_transcript(transcript, TranscriptFormat::kTxt), "a\xEF\xBF\xBD\xEF\xBF\xBD\n");
}

TEST(SubtitleOptionsTest, WordOptionsNeedWordTimes) {
  EXPECT_TRUE(check_subtitle_options({}, false).ok());
  const auto status = check_subtitle_options({.highlight_words = true}, false);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(error_param(status.status()), "highlight_words");
  for (const SubtitleOptions& options : {SubtitleOptions{.max_line_width = 1}, SubtitleOptions{.max_line_count = 1},
                                         SubtitleOptions{.max_words_per_line = 1}}) {
    EXPECT_FALSE(check_subtitle_options(options, false).ok());
    EXPECT_TRUE(check_subtitle_options(options, true).ok());
  }
  EXPECT_FALSE(check_subtitle_options({.max_line_width = -1}, true).ok());
}

TEST(SubtitleOptionsTest, OptionsWithoutEffectAreWarnedOf) {
  EXPECT_TRUE(check_subtitle_options({.max_line_width = 42, .max_line_count = 2}, true)->empty());
  EXPECT_EQ(check_subtitle_options({.max_line_count = 2}, true)->size(), 1u);
  const SubtitleOptions all = {.max_line_width = 42, .max_line_count = 2, .max_words_per_line = 2};
  EXPECT_EQ(check_subtitle_options(all, true)->size(), 1u);
  EXPECT_TRUE(check_subtitle_options({.max_line_width = 42, .max_words_per_line = 2}, true)->empty());
}

// Of max_words_per_line a warning says that it has no effect: where it has none, and not where it has.
TEST(SubtitleOptionsTest, WarningsOfWordsPerLineAreTrue) {
  Segment segment = {.start = 0, .end = 4, .text = " a b c d"};
  for (int i = 0; i < 4; ++i) {
    const auto begin = static_cast<double>(i);
    segment.words.push_back({.word = str_cat(" ", i), .start = begin, .end = begin + 1});
  }
  const Transcript transcript = {.segments = {segment}, .has_words = true};
  for (const int64_t width : {0, 42}) {
    for (const int64_t count : {0, 2}) {
      SCOPED_TRACE(str_cat(width, " characters, ", count, " lines"));
      const SubtitleOptions without = {.max_line_width = width, .max_line_count = count};
      SubtitleOptions with = without;
      with.max_words_per_line = 2;
      const bool has_effect = write_transcript(transcript, TranscriptFormat::kSrt, with) !=
                              write_transcript(transcript, TranscriptFormat::kSrt, without);
      const size_t num_warnings = check_subtitle_options(without, true)->size();
      EXPECT_EQ(check_subtitle_options(with, true)->size(), num_warnings + (has_effect ? 0 : 1));
    }
  }
}

TEST(CompressionRatioTest, IsTheReferences) {
  for (const Json& fixture : testing::read_fixtures("ratios.jsonl")) {
    EXPECT_DOUBLE_EQ(compression_ratio(text(fixture, "text")), testing::number(fixture, "ratio"));
  }
}

}  // namespace
}  // namespace transept
