// Transcription as a caller meets it, around a tiny model: both modes, what is told and when, what is counted, options
// out of range, little audio and much, and chance.
#include "speech/transcriber.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/folder_testing.h"
#include "base/sanitized_testing.h"
#include "speech/transcriber_testing.h"

namespace transept::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Truly;

class TranscriberTest : public ::testing::Test {
 protected:
  TranscribeResult transcribe(const AudioSource& audio, const TranscribeOptions& options,
                              const TranscribeObserver& observer = {}) {
    const int64_t before = house_.num_encoder_runs();
    auto result = house_.transcribe(audio, options, observer);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    EXPECT_EQ(house_.num_encoder_runs() - before, result->counts.num_windows);
    EXPECT_GE(result->counts.num_requests, result->counts.num_windows);
    return std::move(result).value();
  }

  House house_;
};

// ---- One encode a window

TEST_F(TranscriberTest, LanguageFallbackAndWordsRunOverTheEncodeOfTheirWindow) {
  TranscribeOptions options;  // beams, the ladder, thresholds: everything falls back here
  options.language = "";
  options.word_timestamps = true;
  options.best_of = 2;
  options.beam_size = 2;
  const TranscribeResult result = transcribe(synthetic_source(5, 65), options);
  EXPECT_GT(result.counts.num_fallbacks, 0);
  EXPECT_GT(result.counts.num_requests, 3 * result.counts.num_windows);
  EXPECT_EQ(house_.engine().snapshot().stats.num_reencodes, 0);
}

// Without sharing of identical inputs too: what told the language is the first window itself.
TEST_F(TranscriberTest, AWindowThatToldTheLanguageIsNotEncodedAgain) {
  for (const bool share : {true, false}) {
    EngineConfig config;
    config.share_identical_inputs = share;
    const House house(config);
    TranscribeOptions options = greedy_options();
    options.language = "";
    options.clip_timestamps = "0,30";
    options.without_timestamps = true;
    const auto result = house.transcribe(synthetic_source(5, 65), options);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->counts.num_windows, 1) << share;
    EXPECT_EQ(result->counts.num_requests, 2) << share;
    EXPECT_EQ(house.num_encoder_runs(), 1) << share;
  }
}

// Audio below 30 s: its window tells the language where it is sure, and what is unsure is told as the reference does.
TEST_F(TranscriberTest, AShortWindowThatIsSureOfTheLanguageIsTheOnlyOneEncoded) {
  const AudioSource audio = synthetic_source(5, 20);
  for (const bool share : {true, false}) {
    EngineConfig config;
    config.share_identical_inputs = share;
    const House house(config);
    for (TranscribeOptions options : {greedy_options(), batched_options()}) {
      options.without_timestamps = true;
      const auto given = house.transcribe(audio, options);
      ASSERT_TRUE(given.ok()) << given.status();
      const int64_t num_windows = given->counts.num_windows;
      if (options.mode != TranscribeMode::kBatched) {
        EXPECT_EQ(num_windows, 1);
      }
      options.language = "";
      std::vector<std::vector<LanguageGuess>> told;
      TranscribeObserver observer;
      observer.on_language = [&](const std::vector<LanguageGuess>& guesses) { told.push_back(guesses); };
      for (const double sure : {0.0, 1.0}) {
        options.sure_language = sure;
        const int64_t before = house.num_encoder_runs();
        const auto result = house.transcribe(audio, options, observer);
        ASSERT_TRUE(result.ok()) << result.status();
        const bool is_asked = num_windows == 1 && sure == 0;
        EXPECT_EQ(result->counts.num_windows, num_windows + (is_asked ? 0 : 1)) << share;
        EXPECT_EQ(house.num_encoder_runs() - before, result->counts.num_windows) << share;
        EXPECT_EQ(result->transcript.language, told.back().front().code);
        options.language = result->transcript.language;  // with it given, the same
        expect_same(result->transcript, house.transcribe(audio, options)->transcript);
        options.language = "";
      }
      ASSERT_EQ(told.size(), 2u) << "told once, by who decided";
      if (num_windows == 1) {
        EXPECT_NE(told[0].front().probability, told[1].front().probability);
      }
    }
  }
}

// A clip is not the whole: the audio's language is asked of the whole.
TEST_F(TranscriberTest, AClipOfShortAudioDoesNotTellItsLanguage) {
  for (TranscribeOptions options : {greedy_options(), batched_options()}) {
    options.without_timestamps = true;
    options.sure_language = 0;
    options.clip_timestamps = "2,9";
    const int64_t num_windows = transcribe(synthetic_source(5, 20), options).counts.num_windows;
    options.language = "";
    EXPECT_EQ(transcribe(synthetic_source(5, 20), options).counts.num_windows, num_windows + 1);
  }
}

TEST_F(TranscriberTest, EqualWindowsOneAfterTheOtherAreEachEncodedAndCounted) {
  TranscribeOptions options = greedy_options();
  options.without_timestamps = true;
  const TranscribeResult result = transcribe(synthetic_source(1, 120, {{0, 120 * 16000}}), options);
  EXPECT_EQ(result.counts.num_windows, 4);
}

// ---- Modes

TEST_F(TranscriberTest, BatchedGivesTheSameHoweverManyRunTogether) {
  TranscribeOptions options = batched_options();
  options.word_timestamps = true;
  const AudioSource audio = synthetic_source(11, 200, {{20 * 16000, 26 * 16000}, {90 * 16000, 95 * 16000}});
  options.batch_size = 1;
  const TranscribeResult alone = transcribe(audio, options);
  EXPECT_EQ(alone.mode, TranscribeMode::kBatched);
  EXPECT_GT(alone.transcript.segments.size(), 4u);
  for (const int32_t batch_size : {2, 8, 64}) {
    options.batch_size = batch_size;
    expect_same(transcribe(audio, options).transcript, alone.transcript);
  }
  double last = 0;
  for (const Segment& segment : alone.transcript.segments) {
    EXPECT_GE(segment.start, last - 1e-9);
    EXPECT_LE(segment.end, 200 + 1e-9);
    last = segment.start;
  }
}

TEST_F(TranscriberTest, ManyTranscriptionsAtOnceInBothModes) {
  constexpr size_t kCount = 8;
  const auto options_of = [&](size_t i) {
    TranscribeOptions options = i % 2 == 0 ? greedy_options() : batched_options();
    options.word_timestamps = i % 4 == 0;
    if (i % 3 == 0) options.language = "";
    options.seed = i;
    if (i > 4) options.temperature = 0.7;
    return options;
  };
  const auto audio_of = [](size_t i) {
    return synthetic_source(100 + static_cast<uint32_t>(i), 20.0 + 9 * static_cast<double>(i));
  };
  std::vector<Transcript> alone;
  for (size_t i = 0; i < kCount; ++i) alone.push_back(transcribe(audio_of(i), options_of(i)).transcript);
  std::vector<StatusOr<TranscribeResult>> together(kCount, absl::UnknownError("not run"));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kCount; ++i) {
    threads.emplace_back([&, i] { together[i] = house_.transcribe(audio_of(i), options_of(i)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kCount; ++i) {
    SCOPED_TRACE(i);
    ASSERT_TRUE(together[i].ok()) << together[i].status();
    expect_same(together[i]->transcript, alone[i]);
  }
}

// A server may make one for every request.
TEST_F(TranscriberTest, SeveralSpeechModelsShareAnEngine) {
  const SpeechModel other = SpeechModel::of(house_.model(), house_.engine()).value();
  const AudioSource audio = synthetic_source(3, 40);
  std::vector<StatusOr<TranscribeResult>> results(2, absl::UnknownError("not run"));
  std::thread thread([&] { results[0] = Transcriber(other).transcribe(audio, greedy_options()); });
  results[1] = house_.transcribe(audio, greedy_options());
  thread.join();
  for (const auto& result : results) ASSERT_TRUE(result.ok()) << result.status();
  expect_same(results[0]->transcript, results[1]->transcript);
}

TEST_F(TranscriberTest, ThePrefixStandsInTheFirstWindowAlone) {
  for (TranscribeOptions options : {greedy_options(), batched_options()}) {
    options.condition_on_previous_text = false;
    options.without_timestamps = true;
    const AudioSource audio = synthetic_source(11, 100, {{28 * 16000, 36 * 16000}, {60 * 16000, 66 * 16000}});
    const Transcript plain = transcribe(audio, options).transcript;
    options.prefix = "the harbour";
    const Transcript prefixed = transcribe(audio, options).transcript;
    ASSERT_EQ(prefixed.segments.size(), plain.segments.size());
    ASSERT_GT(plain.segments.size(), 2u);
    EXPECT_NE(prefixed.segments[0].tokens, plain.segments[0].tokens);
    EXPECT_THAT(prefixed.text, ::testing::StartsWith(" the harbour"));
    for (size_t i = 1; i < plain.segments.size(); ++i) {
      EXPECT_EQ(prefixed.segments[i].tokens, plain.segments[i].tokens) << i;
    }
  }
}

// With timestamps it begins at 0.00, and the rules count both as said: the answer goes on with text.
TEST_F(TranscriberTest, ThePrefixHasATimeWhereThereAreTimes) {
  for (TranscribeOptions options : {greedy_options(), batched_options()}) {
    options.prefix = "the harbour";
    for (const int32_t beams : {1, 3}) {
      options.beam_size = beams;
      options.token_logprobs = true;
      const Transcript transcript = transcribe(synthetic_source(11, 25), options).transcript;
      ASSERT_FALSE(transcript.segments.empty());
      const Segment& first = transcript.segments.front();
      EXPECT_THAT(first.text, ::testing::StartsWith(" the harbour"));
      EXPECT_LT(first.start, 0.5) << "the window's beginning";
      EXPECT_EQ(first.token_logprobs.size(), first.tokens.size());
      const int32_t begin = *house_.speech().tokens->timestamp_begin();
      EXPECT_EQ(first.tokens.front(), begin);
      const std::vector<int32_t> prefix =
          house_.model()
              .tokenizer->encode(" the harbour", {.add_special_tokens = false, .side = TokenizerSide::kDecoder})
              .value();
      ASSERT_GT(first.tokens.size(), prefix.size() + 1);
      EXPECT_LT(first.tokens[prefix.size() + 1], begin) << "text, and no second first timestamp";
    }
  }
}

// As Python's str.strip() takes them off, which the reference calls on both.
TEST_F(TranscriberTest, AllSpacesAroundPromptAndPrefixAreTakenOff) {
  const AudioSource audio = synthetic_source(11, 25);
  for (std::string TranscribeOptions::*field :
       {&TranscribeOptions::initial_prompt, &TranscribeOptions::hotwords, &TranscribeOptions::prefix}) {
    TranscribeOptions options = greedy_options();
    options.without_timestamps = true;
    options.*field = "the harbour";
    const TranscribeResult bare = transcribe(audio, options);
    for (const std::string_view space : {" \t\n\v\f\r", "\x1c\x1d\x1e\x1f", "\u0085", "\u00a0", "\u1680",
                                         "\u2000\u200a", "\u2028\u2029", "\u202f", "\u205f", "\u3000"}) {
      options.*field = str_cat(space, "the harbour", space);
      const TranscribeResult spaced = transcribe(audio, options);
      EXPECT_EQ(spaced.counts.num_prompt_tokens, bare.counts.num_prompt_tokens);
      expect_same(spaced.transcript, bare.transcript);
    }
    options.*field = "\u200bthe harbour";  // no space
    EXPECT_GT(transcribe(audio, options).counts.num_prompt_tokens, bare.counts.num_prompt_tokens);
  }
}

// The tokens before every window, of both modes: those that an initial prompt has that is carried.
TEST_F(TranscriberTest, HotwordsAreCarriedBeforeEveryWindow) {
  const AudioSource audio = synthetic_source(5, 95);
  for (TranscribeOptions options : {greedy_options(), batched_options()}) {
    const TranscribeResult plain = transcribe(audio, options);
    options.initial_prompt = "the harbour";
    options.carry_initial_prompt = true;
    const TranscribeResult carried = transcribe(audio, options);
    options.initial_prompt = "";
    options.carry_initial_prompt = false;
    options.hotwords = "the harbour";
    const TranscribeResult hot = transcribe(audio, options);
    EXPECT_EQ(hot.counts.num_prompt_tokens, carried.counts.num_prompt_tokens);
    expect_same(hot.transcript, carried.transcript);
    EXPECT_NE(hot.transcript.text, plain.transcript.text) << "the test cannot tell them apart";
  }
}

TEST_F(TranscriberTest, HotwordsLeaveTheInitialPromptItsPlace) {
  const AudioSource audio = synthetic_source(5, 25);
  const auto num_prompt_tokens = [&](std::string hotwords, std::string initial_prompt) {
    TranscribeOptions options = greedy_options();
    options.without_timestamps = true;  // one window
    options.hotwords = std::move(hotwords);
    options.initial_prompt = std::move(initial_prompt);
    return transcribe(audio, options).counts.num_prompt_tokens;
  };
  const int64_t none = num_prompt_tokens("", ""), hot = num_prompt_tokens("the harbour", ""),
                initial = num_prompt_tokens("", "of London");
  EXPECT_GT(hot, none + 1);
  EXPECT_GT(initial, none + 1);
  EXPECT_EQ(num_prompt_tokens("the harbour", "of London"), hot + initial - none - 1) << "one <|startofprev|>";
}

// ---- What is told

TEST_F(TranscriberTest, SegmentsAreToldInOrderAndOneAtATime) {
  for (TranscribeOptions options : {greedy_options(), batched_options()}) {
    options.language = "";
    std::atomic<int> inside = 0;
    std::vector<Segment> told;
    std::vector<LanguageGuess> guesses;
    double progress = 0, all = 0;
    const auto alone = [&](auto&& act) {
      EXPECT_EQ(inside.fetch_add(1), 0);
      act();
      inside.fetch_sub(1);
    };
    TranscribeObserver observer;
    double duration = 0;
    observer.on_duration = [&](double seconds) {
      alone([&] {
        EXPECT_TRUE(guesses.empty());
        duration += seconds;
      });
    };
    observer.on_language = [&](const std::vector<LanguageGuess>& found) { alone([&] { guesses = found; }); };
    observer.on_segment = [&](const Segment& segment) {
      alone([&] {
        EXPECT_FALSE(guesses.empty());
        told.push_back(segment);
      });
    };
    observer.on_progress = [&](double done, double of) {
      alone([&] {
        EXPECT_GE(done, progress);
        EXPECT_LE(done, of);
        progress = done;
        all = of;
      });
    };
    const TranscribeResult result = transcribe(synthetic_source(21, 130), options, observer);
    ASSERT_EQ(told.size(), result.transcript.segments.size());
    for (size_t i = 0; i < told.size(); ++i) {
      EXPECT_EQ(told[i].id, static_cast<int32_t>(i));
      EXPECT_EQ(told[i].tokens, result.transcript.segments[i].tokens);
    }
    EXPECT_EQ(progress, 130);
    EXPECT_EQ(all, 130);
    EXPECT_EQ(duration, 130);
    ASSERT_EQ(guesses.size(), 4u);
    EXPECT_EQ(guesses[0].code, result.transcript.language);
    double sum = 0;
    for (size_t i = 0; i < guesses.size(); ++i) {
      sum += guesses[i].probability;
      if (i > 0) {
        EXPECT_LE(guesses[i].probability, guesses[i - 1].probability);
      }
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST_F(TranscriberTest, ALanguageThatIsGivenIsNotTold) {
  TranscribeObserver observer;
  observer.on_language = [](const std::vector<LanguageGuess>&) { ADD_FAILURE(); };
  EXPECT_EQ(transcribe(synthetic_source(21, 3), greedy_options(), observer).transcript.language, "en");
}

// ---- Counts

TEST_F(TranscriberTest, TokensAreCountedOfTheAnswersThatAreTaken) {
  TranscribeOptions options = greedy_options();
  options.without_timestamps = true;  // a window is one segment, and its tokens are all that was generated
  options.condition_on_previous_text = false;
  const AudioSource audio = synthetic_source(5, 65);
  const TranscribeResult plain = transcribe(audio, options);
  ASSERT_EQ(plain.counts.num_windows, 3);
  EXPECT_EQ(plain.counts.num_prompt_tokens, 3 * 4) << "start, language, task, no timestamps";
  const auto expect_generated = [](const TranscribeResult& result) {
    int64_t num_tokens = 0;
    for (const Segment& segment : result.transcript.segments) num_tokens += std::ssize(segment.tokens);
    EXPECT_GT(num_tokens, 0);
    EXPECT_GE(result.counts.num_generated_tokens, num_tokens);
    EXPECT_LE(result.counts.num_generated_tokens, num_tokens + result.counts.num_windows) << "an end token a window";
  };
  expect_generated(plain);
  // A detected language adds nothing; of a ladder and of samples one answer is taken.
  options.language = "";
  options.temperature_increment = 0.5;
  options.best_of = 3;
  options.thresholds.logprob = 0;  // everything falls back
  const TranscribeResult more = transcribe(audio, options);
  EXPECT_EQ(more.counts.num_fallbacks, 2 * more.counts.num_windows);
  EXPECT_EQ(more.counts.num_prompt_tokens, 3 * 4);
  expect_generated(more);
}

// ---- Little audio, and much

bool goes_forwards(const Segment& segment) { return segment.start >= 0 && segment.start <= segment.end; }

TEST_F(TranscriberTest, LittleAudio) {
  const size_t kFrame = 160;
  const std::vector<size_t> sizes =
      kSanitized ? std::vector<size_t>{1, kFrame, 16000} : std::vector<size_t>{1, 159, kFrame, 161, 1600, 16000};
  std::vector<TranscribeOptions> asked;
  for (TranscribeOptions options : {greedy_options(), batched_options()}) {
    for (const bool words : {false, true}) {
      options.word_timestamps = words;
      for (const std::string_view language : {"en", ""}) {
        options.language = language;
        asked.push_back(options);
      }
    }
  }
  for (const TranscribeOptions& options : asked) {
    for (const size_t num_samples : sizes) {
      SCOPED_TRACE(str_cat(num_samples, " samples, ", options.word_timestamps, options.language));
      for (const Silence& silence : {Silence(), Silence{{0, num_samples}}}) {
        const AudioSource audio(raw_audio(synthetic_audio(9, num_samples, silence)));
        const TranscribeResult result = transcribe(audio, options);
        EXPECT_DOUBLE_EQ(result.transcript.duration, static_cast<double>(num_samples) / 16000);
        EXPECT_THAT(result.transcript.segments, Each(Truly(goes_forwards)));
        EXPECT_TRUE(num_samples >= kFrame || result.transcript.segments.empty());
      }
    }
  }
  const Status empty = house_.transcribe(AudioSource(RawAudio{{}, 16000}), greedy_options()).status();
  EXPECT_THAT(error_message(empty), HasSubstr("empty"));
}

TEST_F(TranscriberTest, AudioIsCappedByBothLengths) {
  TranscribeOptions options = greedy_options();
  options.max_audio_seconds = 2;
  const Status status = house_.transcribe(synthetic_source(1, 5), options).status();
  EXPECT_THAT(error_message(status), AllOf(HasSubstr("5 s"), HasSubstr("2 s")));
  const Status broken = house_.transcribe(AudioSource(AudioBytes::from_string("no audio")), options).status();
  EXPECT_FALSE(broken.ok());
}

// ---- Chance

TEST_F(TranscriberTest, ASeedGivesTheSameAgainAndAnotherDoesNot) {
  TranscribeOptions options = greedy_options();
  options.temperature = 0.9;
  options.best_of = 3;
  options.seed = 5;
  for (const TranscribeMode mode : {TranscribeMode::kSequential, TranscribeMode::kBatched}) {
    options.mode = mode;
    const AudioSource audio = synthetic_source(31, 70);
    const Transcript first = transcribe(audio, options).transcript;
    expect_same(transcribe(audio, options).transcript, first);
    options.seed = 6;
    EXPECT_NE(transcribe(audio, options).transcript.text, first.text);
    options.seed = 5;
  }
}

// ---- What cannot be served is refused by its name, before anything is decoded

TEST_F(TranscriberTest, OptionsOutOfRange) {
  const struct {
    std::string_view field;
    void (*set)(TranscribeOptions&);
  } cases[] = {
      {"task", [](TranscribeOptions& o) { o.task = "sing"; }},
      {"language", [](TranscribeOptions& o) { o.language = "fr"; }},
      {"language", [](TranscribeOptions& o) { o.language = "klingon"; }},
      {"sure_language", [](TranscribeOptions& o) { o.sure_language = NAN; }},
      {"temperature", [](TranscribeOptions& o) { o.temperature = -0.1; }},
      {"temperature", [](TranscribeOptions& o) { o.temperature = NAN; }},
      {"temperature_increment_on_fallback", [](TranscribeOptions& o) { o.temperature_increment = 0; }},
      {"temperature_increment_on_fallback", [](TranscribeOptions& o) { o.temperature_increment = 1e-9; }},
      {"beam_size", [](TranscribeOptions& o) { o.beam_size = 0; }},
      {"beam_size", [](TranscribeOptions& o) { o.beam_size = 65; }},
      {"best_of", [](TranscribeOptions& o) { o.best_of = -1; }},
      {"batch_size", [](TranscribeOptions& o) { o.batch_size = 0; }},
      {"patience", [](TranscribeOptions& o) { o.patience = 1; }},  // greedy
      {"patience", [](TranscribeOptions& o) { o.beam_size = 3, o.patience = 0; }},
      {"patience", [](TranscribeOptions& o) { o.beam_size = 3, o.patience = NAN; }},
      {"length_penalty", [](TranscribeOptions& o) { o.length_penalty = 1.5; }},
      {"compression_ratio_threshold", [](TranscribeOptions& o) { o.thresholds.compression_ratio = NAN; }},
      {"logprob_threshold", [](TranscribeOptions& o) { o.thresholds.logprob = INFINITY; }},
      {"no_speech_threshold", [](TranscribeOptions& o) { o.thresholds.no_speech = NAN; }},
      {"max_audio_seconds", [](TranscribeOptions& o) { o.max_audio_seconds = 0; }},
      {"max_audio_seconds", [](TranscribeOptions& o) { o.max_audio_seconds = NAN; }},
      {"hallucination_silence_threshold", [](TranscribeOptions& o) { o.hallucination_silence_threshold = 2; }},
      {"hallucination_silence_threshold",
       [](TranscribeOptions& o) { o.word_timestamps = true, o.hallucination_silence_threshold = -2; }},
      {"clip_timestamps", [](TranscribeOptions& o) { o.clip_timestamps = "0,x"; }},
      {"clip_timestamps", [](TranscribeOptions& o) { o.clip_timestamps = "-1"; }},
      {"clip_timestamps", [](TranscribeOptions& o) { o.clip_timestamps = "5,1"; }},
      {"suppress_tokens", [](TranscribeOptions& o) { o.suppress_tokens = {{-2}}; }},
      {"suppress_tokens", [](TranscribeOptions& o) { o.suppress_tokens = {{1913}}; }},
      {"initial_prompt", [](TranscribeOptions& o) { o.initial_prompt = "a <|en|> b"; }},
      {"hotwords", [](TranscribeOptions& o) { o.hotwords = "a <|en|> b"; }},
      {"hotwords", [](TranscribeOptions& o) { o.hotwords = std::string(500, 'x'); }},
      {"prefix", [](TranscribeOptions& o) { o.prefix = "<|0.00|>"; }},
      {"prefix", [](TranscribeOptions& o) { o.prefix = std::string(200, 'x'); }},
  };
  TranscribeObserver observer;
  observer.on_segment = [](const Segment&) { ADD_FAILURE(); };
  for (const auto& [field, set] : cases) {
    TranscribeOptions options = greedy_options();
    set(options);
    const Status status = house_.transcribe(AudioSource(AudioBytes::from_string("not even audio")), options).status();
    EXPECT_EQ(error_param(status), field) << status;
    EXPECT_FALSE(error_message(status).empty());
  }
}

TEST_F(TranscriberTest, BeamsAndSamplesThatTheEngineCannotRunAreRefusedByName) {
  EngineConfig config;
  config.max_num_seqs = 3;
  const House house(config);
  const AudioSource audio = synthetic_source(1, 3);
  TranscribeOptions options = greedy_options();
  options.beam_size = 4;
  const Status beams = house.transcribe(audio, options).status();
  EXPECT_EQ(error_param(beams), "beam_size");
  EXPECT_THAT(error_message(beams), AllOf(HasSubstr("4"), HasSubstr("3"), HasSubstr("--max-num-seqs")));
  // Before the first window, not with the first that falls back.
  options.beam_size = 1;
  options.best_of = 4;
  EXPECT_TRUE(house.transcribe(audio, options).ok());
  options.temperature_increment = 0.5;
  EXPECT_EQ(error_param(house.transcribe(audio, options).status()), "best_of");
  // A pool that holds one sequence over a window, and not ten.
  EngineConfig small;
  small.kv_cache_memory = uint64_t{800} << 10;
  const House narrow(small);
  EXPECT_TRUE(narrow.transcribe(audio, greedy_options()).ok());
  options = greedy_options();
  options.beam_size = 40;
  const Status memory = narrow.transcribe(audio, options).status();
  EXPECT_EQ(error_param(memory), "beam_size") << memory;
}

}  // namespace
}  // namespace transept::testing
