#include "speech/window_segments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/strings.h"
#include "base/utf8.h"
#include "speech/decoding_rules.h"
#include "speech/speech_testing.h"
#include "speech/word_times.h"

namespace transept {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::integer;
using testing::list;
using testing::member;
using testing::number;
using testing::text;

std::optional<double> optional_number(const Json& json, std::string_view name) {
  const Json& value = member(json, name);
  return value.is_null() ? std::nullopt : std::optional<double>(value.as_double());
}

// The reference's loop over windows, made of this folder's rules; decodings and alignments come from the fixture, which
// also says what must have been asked.
class Replay final {
 public:
  explicit Replay(const Json& run)
      : run_(run),
        table_(list(run, "bytes")),
        thresholds_{optional_number(run, "compression_ratio_threshold"), optional_number(run, "logprob_threshold"),
                    optional_number(run, "no_speech_threshold")},
        silence_threshold_(optional_number(run, "hallucination_silence_threshold")),
        previous_(testing::ids_of(member(run, "initial_prompt")), member(run, "carry_initial_prompt").as_bool(), 223) {}

  std::vector<Segment> transcribe() {
    const auto clips = parse_clip_timestamps(text(run_, "clip_timestamps"), integer(run_, "content_frames"));
    CHECK(clips.ok());
    for (const FrameRange& clip : *clips) {
      for (int64_t seek = clip.begin; seek < clip.end;) seek = transcribe_window(seek, clip.end);
    }
    EXPECT_EQ(next_call_, list(run_, "calls").size());
    EXPECT_EQ(next_alignment_, list(run_, "alignments").size());
    return std::move(segments_);
  }

 private:
  const Json& decode_with_fallback() {
    const Json* call = nullptr;
    for (const Json& temperature : list(run_, "temperature")) {
      if (next_call_ == list(run_, "calls").size()) {
        ADD_FAILURE() << "more decodings than the reference's";
        return *call;
      }
      call = &list(run_, "calls")[next_call_++];
      EXPECT_EQ(previous_.prompt(), testing::ids_of(member(*call, "prompt")));
      EXPECT_EQ(temperature.as_double(), number(*call, "temperature"));
      if (!needs_fallback(scores_of(*call), thresholds_)) break;
    }
    return *call;
  }

  static WindowScores scores_of(const Json& call) {
    return {number(call, "compression_ratio"), number(call, "avg_logprob"), number(call, "no_speech_prob")};
  }

  int64_t transcribe_window(int64_t seek, int64_t clip_end) {
    const int64_t size = std::min(kWindowFrames, clip_end - seek);
    if (next_call_ == list(run_, "calls").size()) {
      ADD_FAILURE() << "more windows than the reference's, at " << seek;
      return clip_end;
    }
    const Json& call = decode_with_fallback();
    if (is_silence(scores_of(call), thresholds_)) return seek + size;
    const std::vector<int32_t> tokens = testing::ids_of(member(call, "tokens"));
    WindowWords words = {
        .window = window_segments({.tokens = tokens,
                                   .seek = seek,
                                   .segment_size = size,
                                   .timestamp_begin = static_cast<int32_t>(integer(run_, "timestamp_begin"))})};
    if (member(run_, "word_timestamps").as_bool()) {
      add_words(words.window.segments, size);
      words.last_speech_timestamp = last_speech_;
      settle_words({seek, size, integer(run_, "content_frames")},
                   silence_threshold_.has_value() ? &*silence_threshold_ : nullptr, words);
      last_speech_ = words.last_speech_timestamp;
      if (words.skipped) return words.window.next_seek;
    }
    keep(words.window.segments, call);
    return words.window.next_seek;
  }

  void add_words(std::vector<Segment>& segments, int64_t size) {
    const Json& alignment = list(run_, "alignments")[next_alignment_++];
    EXPECT_EQ(integer(alignment, "frames"), size);
    std::vector<int32_t> tokens;
    for (const Segment& segment : segments) {
      for (const int32_t token : segment.tokens) {
        if (token < end_of_text()) tokens.push_back(token);
      }
    }
    add_word_times(testing::timings_of(list(alignment, "words"), tokens),
                   {.end_of_text = end_of_text(), .last_speech_timestamp = last_speech_}, segments);
  }

  void keep(std::vector<Segment>& segments, const Json& call) {
    for (Segment& segment : segments) {
      for (const int32_t token : segment.tokens) {
        if (token < end_of_text()) table_.append(token, segment.text);
      }
    }
    for (Segment& segment : segments) segment.text = sanitize_utf8(segment.text);
    clear_empty_segments(segments);
    for (Segment& segment : segments) {
      segment.id = static_cast<int32_t>(segments_.size());
      previous_.append(segment.tokens);
      segments_.push_back(std::move(segment));
    }
    if (!member(run_, "condition_on_previous_text").as_bool() || number(call, "temperature") > 0.5) previous_.reset();
  }

  int32_t end_of_text() const { return static_cast<int32_t>(integer(run_, "end_of_text")); }

  const Json& run_;
  testing::TokenTable table_;
  DecodingThresholds thresholds_;
  std::optional<double> silence_threshold_;
  PreviousText previous_;
  size_t next_call_ = 0, next_alignment_ = 0;
  double last_speech_ = 0;
  std::vector<Segment> segments_;
};

TEST(RunTest, WholeRunsAskAndGiveWhatTheReferencesDo) {
  const std::vector<Json> runs = testing::read_fixtures("runs.jsonl");
  ASSERT_GE(runs.size(), 40u);
  for (size_t i = 0; i < runs.size(); ++i) {
    SCOPED_TRACE(str_cat("run ", i));
    const std::vector<Segment> segments = Replay(runs[i]).transcribe();
    const Json::Array& expected = list(runs[i], "segments");
    ASSERT_EQ(segments.size(), expected.size());
    for (size_t j = 0; j < segments.size(); ++j) {
      SCOPED_TRACE(str_cat("segment ", j));
      const Segment wanted = testing::segment_of(expected[j]);
      EXPECT_EQ(segments[j].seek, wanted.seek);
      EXPECT_EQ(segments[j].start, wanted.start);
      EXPECT_EQ(segments[j].end, wanted.end);
      EXPECT_EQ(segments[j].tokens, wanted.tokens);
      EXPECT_EQ(segments[j].text, wanted.text);
      testing::expect_words(segments[j].words, wanted.words);
    }
  }
}

constexpr int32_t kBegin = 1000;

TEST(WindowSegmentsTest, TimestampsBeyondTheWindowCountAsItsEnd) {
  const std::vector<int32_t> tokens = {kBegin, 5, std::numeric_limits<int32_t>::max(), kBegin + 9999, 6};
  const WindowSegments window =
      window_segments({.tokens = tokens, .seek = 100, .segment_size = 50, .timestamp_begin = kBegin});
  ASSERT_EQ(window.segments.size(), 1u);
  EXPECT_EQ(window.segments[0].end, 31);
  EXPECT_EQ(window.next_seek, 3100);
}

TEST(WindowSegmentsTest, WindowsAlwaysMoveOn) {
  const std::vector<int32_t> stuck = {kBegin, kBegin, 5};
  EXPECT_EQ(window_segments({.tokens = stuck, .seek = 7, .segment_size = 30, .timestamp_begin = kBegin}).next_seek, 37);
  EXPECT_EQ(window_segments({.seek = 7, .segment_size = 0, .timestamp_begin = kBegin}).next_seek, 8);
  WindowWords words = {.window = {.next_seek = 0}};
  settle_words({.seek = 10, .segment_size = 0, .content_frames = 10}, nullptr, words);
  EXPECT_EQ(words.window.next_seek, 11);
}

TEST(WindowSegmentsTest, TimesNeverGoBack) {
  const std::vector<int32_t> tokens = {kBegin + 50, 5, kBegin + 10, kBegin + 10, 6, kBegin + 20};
  const WindowSegments window = window_segments({.tokens = tokens, .segment_size = 3000, .timestamp_begin = kBegin});
  ASSERT_EQ(window.segments.size(), 2u);
  EXPECT_EQ(window.segments[0].end, window.segments[0].start);
  EXPECT_TRUE(window.single_timestamp_ending);
}

TEST(WindowSegmentsTest, NoTokensGiveNoSegments) {
  EXPECT_TRUE(window_segments({.segment_size = 3000, .timestamp_begin = kBegin}).segments.empty());
}

Segment segment_with(std::vector<Word> words) {
  Segment segment = {.start = words.front().start, .end = words.back().end};
  segment.words = std::move(words);
  return segment;
}

int64_t settled_seek(const Segment& segment, double threshold) {
  WindowWords words = {.window = {.segments = {segment}, .next_seek = 1}};
  settle_words({.seek = 0, .segment_size = 3000, .content_frames = 9000}, &threshold, words);
  EXPECT_EQ(words.window.segments.size(), 1u);
  return words.window.next_seek;
}

// transcribe.py: `remaining_duration > threshold` decides between the last word's end and the window's.
TEST(SettleWordsTest, SilenceAfterTheLastWordIsSkippedUnlessItIsShort) {
  const Segment good = segment_with({{" a", 0.1, 0.9, 0.9}, {" b", 28.0, 29.0, 0.9}});
  EXPECT_EQ(settled_seek(good, 0.5), 2900);
  EXPECT_EQ(settled_seek(good, 2), 3000);
}

// transcribe.py: `content_duration - segment["end"] < threshold` ends the audio there.
TEST(SettleWordsTest, WhatIsMadeUpNearTheEndOfTheAudioEndsIt) {
  const double threshold = 2;
  for (const int64_t content_frames : {3000, 6000}) {
    WindowWords words;
    words.window.segments = {segment_with({{" well", 0.5, 1.0, 0.9}}), segment_with({{" thanks", 28.4, 28.5, 0.05}})};
    settle_words({.seek = 0, .segment_size = 3000, .content_frames = content_frames}, &threshold, words);
    EXPECT_EQ(words.window.segments.size(), 1u);
    EXPECT_EQ(words.window.next_seek, content_frames == 3000 ? 3000 : 2840);
    EXPECT_EQ(words.last_speech_timestamp, 1.0);
  }
}

TEST(AnomalyTest, ImprobableShortAndLongWordsCount) {
  EXPECT_DOUBLE_EQ(word_anomaly_score({" a", 0, 1, 0.9}), 0);
  EXPECT_DOUBLE_EQ(word_anomaly_score({" a", 0, 0.033, 0.1}), 1 + (0.133 - 0.033) * 15);
  EXPECT_DOUBLE_EQ(word_anomaly_score({" a", 0, 4.5, 0.9}), 2.5);
  EXPECT_FALSE(is_segment_anomaly(nullptr));
}

TEST(TemperatureTest, LadderIsNumpysRange) {
  EXPECT_THAT(*temperature_ladder(0, 0.2), ElementsAre(0.0, 0.2, 0.4, 0.2 * 3, 0.8, 1.0));
  EXPECT_THAT(*temperature_ladder(0.4, 0.3), ElementsAre(0.4, 0.7, 0.9999999999999999));
  EXPECT_THAT(*temperature_ladder(0.5, std::nullopt), ElementsAre(0.5));
  EXPECT_THAT(*temperature_ladder(1.5, 0.2), ElementsAre(1.5));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {0.0, -0.2, nan, 1e-9}) EXPECT_FALSE(temperature_ladder(0, bad).ok()) << bad;
  for (const double bad : {-1.0, nan}) EXPECT_FALSE(temperature_ladder(bad, 0.2).ok()) << bad;
}

TEST(FallbackTest, ThresholdsThatAreNotThereAreNotAsked) {
  const WindowScores poor = {.compression_ratio = 3, .avg_logprob = -2, .no_speech_prob = 0.9};
  EXPECT_FALSE(needs_fallback(poor, {}));  // silence
  EXPECT_TRUE(is_silence(poor, {}));
  EXPECT_TRUE(needs_fallback(poor, {.no_speech = std::nullopt}));
  EXPECT_TRUE(needs_fallback(poor, {.logprob = std::nullopt}));
  EXPECT_FALSE(needs_fallback(poor, {std::nullopt, std::nullopt, std::nullopt}));
  EXPECT_FALSE(is_silence(poor, {.no_speech = std::nullopt}));
  EXPECT_FALSE(is_silence({1, -0.5, 0.9}, {}));
  EXPECT_TRUE(is_silence({1, -0.5, 0.9}, {.logprob = std::nullopt}));
}

// The reference's own lines (transcribe.py; decoding.py, _get_initial_tokens) with Python's slices, over lists that
// forget nothing.
std::vector<int32_t> reference_prompt(const std::vector<int32_t>& initial, const std::vector<int32_t>& since_reset,
                                      int64_t max_tokens) {
  const auto last = [](const std::vector<int32_t>& list, int64_t count) {  // list[-count:]
    const int64_t size = std::ssize(list);
    const int64_t begin = count > 0 ? std::max<int64_t>(size - count, 0) : std::min(-count, size);
    return std::vector<int32_t>(list.begin() + begin, list.end());
  };
  std::vector<int32_t> prompt = initial;
  const std::vector<int32_t> remaining = last(since_reset, max_tokens - std::ssize(initial));
  prompt.insert(prompt.end(), remaining.begin(), remaining.end());
  return last(prompt, max_tokens);
}

TEST(PreviousTextTest, ACarriedPromptOfAnyLengthIsTheReferences) {
  constexpr int64_t kMax = 7;
  for (int32_t num_initial = 0; num_initial <= 24; ++num_initial) {
    std::vector<int32_t> initial, since_reset;
    for (int32_t i = 0; i < num_initial; ++i) initial.push_back(1000 + i);
    PreviousText previous(initial, /*carry=*/true, kMax);
    for (int32_t i = 0; i < 60; ++i) {
      SCOPED_TRACE(str_cat(num_initial, " of the prompt, ", since_reset.size(), " before"));
      ASSERT_EQ(previous.prompt(), reference_prompt(initial, since_reset, kMax));
      if (i == 35) {
        previous.reset();
        since_reset.clear();
      }
      const std::vector<int32_t> segment(static_cast<size_t>(i % 4), i);
      previous.append(segment);
      since_reset.insert(since_reset.end(), segment.begin(), segment.end());
    }
  }
}

// faster-whisper, transcribe.py, get_prompt: they come first, of every window, after a reset too.
TEST(PreviousTextTest, HotwordsStandBeforeAllElse) {
  const std::vector<int32_t> hotwords = {71, 72}, initial = {1, 2, 3};
  PreviousText previous(initial, /*carry=*/false, 6, hotwords);
  EXPECT_THAT(previous.prompt(), ElementsAre(71, 72, 1, 2, 3));
  previous.append(std::vector<int32_t>{8, 9});
  EXPECT_THAT(previous.prompt(), ElementsAre(71, 72, 2, 3, 8, 9));
  previous.reset();
  EXPECT_THAT(previous.prompt(), ElementsAre(71, 72));
  PreviousText carried(initial, /*carry=*/true, 6, hotwords);
  carried.append(std::vector<int32_t>{8, 9});
  EXPECT_THAT(carried.prompt(), ElementsAre(71, 72, 1, 2, 3, 9));
  PreviousText alone({}, /*carry=*/false, 6, hotwords);
  alone.append(std::vector<int32_t>{4, 5, 6, 7, 8, 9});
  EXPECT_THAT(alone.prompt(), ElementsAre(71, 72, 6, 7, 8, 9));
}

TEST(PreviousTextTest, AnInitialPromptThatFillsAllIsPushedOut) {
  const std::vector<int32_t> initial = {1, 2, 3, 4, 5};
  PreviousText carried(initial, /*carry=*/true, 4);
  carried.append(std::vector<int32_t>{8, 9});
  EXPECT_THAT(carried.prompt(), ElementsAre(3, 4, 5, 9));
  PreviousText first(initial, /*carry=*/false, 4);
  first.append(std::vector<int32_t>{8, 9});
  EXPECT_THAT(first.prompt(), ElementsAre(4, 5, 8, 9));
  first.reset();
  EXPECT_TRUE(first.prompt().empty());
}

TEST(ClipTimestampsTest, RangesInFrames) {
  using Ranges = std::vector<FrameRange>;
  EXPECT_EQ(*parse_clip_timestamps("", 500), (Ranges{{0, 500}}));
  EXPECT_EQ(*parse_clip_timestamps("0", 500), (Ranges{{0, 500}}));
  EXPECT_EQ(*parse_clip_timestamps(" 1, 2.005 ,1e0", 500), (Ranges{{100, 200}, {100, 500}}));
  EXPECT_EQ(*parse_clip_timestamps("4,99,3,3,700", 500), (Ranges{{400, 500}}));
  EXPECT_EQ(*parse_clip_timestamps("0", 0), Ranges());
  for (const char* bad : {"x", "1,,2", "-1", "nan", "inf", "1e999", "1 2", "5,1", "0,1,700,600"}) {
    const auto ranges = parse_clip_timestamps(bad, 500);
    ASSERT_FALSE(ranges.ok()) << bad;
    EXPECT_EQ(error_param(ranges.status()), "clip_timestamps");
  }
  EXPECT_THAT(error_message(parse_clip_timestamps("0,2,5.5,1,3", 500).status()), HasSubstr("from 5.5 s to 1 s"));
  EXPECT_EQ(*parse_clip_timestamps("2,3,0,1", 500), (Ranges{{200, 300}, {0, 100}}));
}

}  // namespace
}  // namespace transept
