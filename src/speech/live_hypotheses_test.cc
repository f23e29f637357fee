#include "speech/live_hypotheses.h"
#include "base/sanitized_testing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <semaphore>

#include "base/utf8.h"
#include "speech/audio_windows.h"
#include "speech/live_testing.h"

namespace transept::testing {
namespace {

std::unique_ptr<WindowDecoder> greedy_decoder(House& house, std::string language = "en") {
  TranscribeOptions options = greedy_options();
  options.language = std::move(language);
  return WindowDecoder::create(house.speech(), options, {}).value();
}

// The two ways to ask for one attempt.
TEST(LiveHypotheses, AnAttemptIsTheDecodersFirst) {
  House house;
  const auto decoder = greedy_decoder(house);
  const auto features = house.speech().audio->features(raw_audio(synthetic_audio(3, 16000 * 4)).samples);
  const std::vector<int32_t> previous = {300, 301};
  const WindowAnswer wanted = decoder->decode(decoder->encode(features).value(), previous, false, 4, 0).value();
  for (const std::vector<int32_t>& draft : {std::vector<int32_t>(), wanted.tokens}) {
    auto stream = house.engine().add_request(decoder->attempt_request(features, previous, 4, draft));
    ASSERT_TRUE(stream.ok());
    const RequestOutput output = stream->next().value();
    const WindowAnswer answer = decoder->attempt_answer(output).value();
    EXPECT_LE(answer.tokens.size(), size_t{4 * 13 + 10});
    const size_t size = std::min(answer.tokens.size(), wanted.tokens.size());
    EXPECT_EQ(answer.tokens,
              std::vector<int32_t>(wanted.tokens.begin(), wanted.tokens.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_EQ(answer.scores.no_speech_prob, wanted.scores.no_speech_prob);
  }
}

TEST(LiveHypotheses, EachTokenHasItsPlaceInTheText) {
  House house;
  const auto decoder = greedy_decoder(house);
  const auto features = house.speech().audio->features(raw_audio(synthetic_audio(3, 16000 * 4)).samples);
  std::vector<int32_t> tokens = decoder->decode(decoder->encode(features).value(), {}, false, 4, 0).value().tokens;
  tokens.insert(tokens.begin() + 2, *house.speech().tokens->timestamp_begin());
  const std::vector<size_t> ends = decoder->text_ends(tokens);
  ASSERT_EQ(ends.size(), tokens.size());
  ASSERT_GT(ends.size(), 5u);
  EXPECT_EQ(ends[2], ends[1]);  // the timestamp
  size_t num_whole = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const std::string text = decoder->whole_text(std::span(tokens).first(i + 1));
    if (text.find(kReplacementUtf8) != std::string::npos) continue;  // an unfinished character
    EXPECT_EQ(ends[i], text.size()) << i;
    ++num_whole;
  }
  EXPECT_GT(num_whole, 3u);
}

TEST(LiveHypotheses, LanguagesAreGuessedAsByTheDecoder) {
  House house;
  const auto decoder = greedy_decoder(house, "");
  const auto features = house.speech().audio->features(raw_audio(synthetic_audio(3, 16000 * 4)).samples);
  auto stream = house.engine().add_request(decoder->language_request(features));
  ASSERT_TRUE(stream.ok());
  const std::vector<LanguageGuess> guesses = decoder->language_guesses(stream->next().value()).value();
  EXPECT_TRUE(decoder->needs_language());
  const std::vector<LanguageGuess> wanted = decoder->detect_language(features).value();
  ASSERT_EQ(guesses.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_EQ(guesses[i].code, wanted[i].code);
    EXPECT_EQ(guesses[i].probability, wanted[i].probability);
  }
}

// A schedule: the voice of audio as it comes, and answers when the test takes them.
class Schedule {
 public:
  Schedule(House& house, const LivePolicy& policy, std::string language = "en")
      : ear_(*house.speech().audio, voice_log_mel(*house.speech().audio).value(), 16000),
        hypotheses_(house.speech(), tally_, [this] { ready_.release(); }) {
    hypotheses_.set_options(greedy_decoder(house, std::move(language)), policy, 0.5);
  }

  void hear(std::span<const int16_t> samples) {
    std::vector<FrameVoice> voice;
    ear_.push(samples, voice);
    for (const FrameVoice& frame : voice) hypotheses_.hear(frame);
    const bool was_running = hypotheses_.is_running();
    hypotheses_.consider(ear_);
    if (!was_running && hypotheses_.is_running()) ends_.push_back(ear_.num_frames());
    ear_.forget(hypotheses_.first_needed());
    most_kept_ = std::max(most_kept_, ear_.num_frames() - ear_.first_frame());
    take_news();
  }
  // Waits for the running attempt, if one runs.
  void answer() {
    while (hypotheses_.is_running()) {
      ready_.acquire();
      hypotheses_.take_answer();
      take_news();
    }
  }

  LiveHypotheses& hypotheses() { return hypotheses_; }
  const LiveTally& tally() const { return tally_; }
  const std::string& told() const { return told_; }
  const std::vector<int64_t>& ends() const { return ends_; }  // frames heard when attempts were begun
  int64_t most_kept() const { return most_kept_; }

 private:
  void take_news() {
    const auto news = hypotheses_.take_news();
    if (news.has_value()) told_ += news->delta;
  }

  LiveTally tally_;
  std::counting_semaphore<> ready_{0};
  LiveEar ear_;
  LiveHypotheses hypotheses_;
  std::string told_;
  std::vector<int64_t> ends_;
  int64_t most_kept_ = 0;
};

TEST(LiveHypotheses, OneIsMadeEveryHopAndNoneOverSilence) {
  House house;
  Schedule schedule(house, live_policy(LiveDelay::kLow));
  schedule.hypotheses().begin_item(0, std::nullopt);
  std::vector<int16_t> audio(32000);
  const std::vector<int16_t> sound = chatter(5);
  audio.insert(audio.end(), sound.begin(), sound.end());
  audio.resize(audio.size() + 16000 * 10);
  for (size_t at = 0; at < audio.size(); at += 320) {
    schedule.hear(std::span(audio).subspan(at, 320));
    schedule.answer();
  }
  const std::vector<int64_t>& ends = schedule.ends();
  ASSERT_GE(ends.size(), 9u);
  EXPECT_GE(ends.front(), 248);  // half a second of sound, whose beginning two frames of silence hear
  EXPECT_LE(ends.front(), 265);
  for (size_t i = 1; i < ends.size(); ++i) EXPECT_GE(ends[i] - ends[i - 1], 50);
  // What was said last is heard twice more, and that is all.
  EXPECT_LE(ends.back(), 700 + 3 * 52 + 20);
  EXPECT_EQ(schedule.tally()[LiveCount::kHypotheses], std::ssize(ends));
}

// However often they are heard: what they say is told when their window closes.
TEST(LiveHypotheses, ImprobableOnesConfirmNothing) {
  const std::vector<int16_t> audio = chatter(6);
  for (const double least : {0.0, -1e9}) {
    House house;
    Schedule schedule(house, {.agreement = {-INFINITY}, .least_mean_logprob = least});
    schedule.hypotheses().begin_item(0, 0);
    for (size_t at = 0; at < audio.size(); at += 320) {
      schedule.hear(std::span(audio).subspan(at, 320));
      schedule.answer();
    }
    EXPECT_GE(schedule.tally()[LiveCount::kHypotheses], 8);
    EXPECT_EQ(schedule.told().empty(), least == 0);
  }
}

// Late answers make hypotheses rarer, never old: each is over all audio there is.
TEST(LiveHypotheses, UnderLoadTheyAreRarer) {
  House house;
  Schedule schedule(house, live_policy(LiveDelay::kLow));
  schedule.hypotheses().begin_item(0, 0);
  const std::vector<int16_t> audio = chatter(10);
  for (size_t at = 0, i = 0; at < audio.size(); at += 1600, ++i) {
    schedule.hear(std::span(audio).subspan(at, 1600));
    if (i % 20 == 19) schedule.answer();  // every two seconds
  }
  EXPECT_GE(schedule.ends().size(), 5u);
  EXPECT_LE(schedule.ends().size(), 6u);
}

// Three minutes without a commit: the window begins anew, whatever the schedule.
TEST(LiveHypotheses, LongItemsNeedBoundedMemory) {
  for (const size_t pieces : {size_t{1}, size_t{7}, size_t{400}}) {
    if (kSanitized && pieces == 1) continue;
    SCOPED_TRACE(pieces);
    House house;
    Schedule schedule(house, live_policy(LiveDelay::kLow));
    schedule.hypotheses().begin_item(0, 0);
    const std::vector<int16_t> audio = chatter(180);
    for (size_t at = 0, i = 1; at < audio.size(); at += 4800, ++i) {
      const std::string before = schedule.told();
      schedule.hear(std::span(audio).subspan(at, 4800));
      if (i % pieces == 0) schedule.answer();
      EXPECT_TRUE(schedule.told().starts_with(before));
    }
    schedule.answer();
    EXPECT_LE(schedule.most_kept(), pieces < 400 ? 2800 + 130 + 2 * 30 * static_cast<int64_t>(pieces) : 6000 + 200);
    EXPECT_EQ(schedule.hypotheses().end_item(), schedule.told());
    if (pieces < 400) {
      EXPECT_FALSE(schedule.told().empty());
    }
  }
}

TEST(LiveHypotheses, LanguageIsAskedUntilItIsSure) {
  House house;
  Schedule schedule(house, live_policy(LiveDelay::kLow), "");
  schedule.hypotheses().begin_item(0, 0);
  const std::vector<int16_t> audio = chatter(8);
  for (size_t at = 0; at < audio.size(); at += 1600) {
    schedule.hear(std::span(audio).subspan(at, 1600));
    schedule.answer();
  }
  EXPECT_GE(schedule.tally()[LiveCount::kHypotheses], 10);
  EXPECT_EQ(schedule.tally()[LiveCount::kLostHypotheses], 0);
}

TEST(LiveHypotheses, AnEngineThatTakesNoneCostsNothingElse) {
  House house;
  Schedule schedule(house, live_policy(LiveDelay::kLow));
  schedule.hypotheses().begin_item(0, 0);
  const std::vector<int16_t> audio = chatter(4);
  EXPECT_TRUE(house.engine().drain(std::chrono::seconds(30)).ok());
  for (size_t at = 0; at < audio.size(); at += 1600) schedule.hear(std::span(audio).subspan(at, 1600));
  EXPECT_GE(schedule.tally()[LiveCount::kLostHypotheses], 6);
  EXPECT_FALSE(schedule.hypotheses().is_running());
}

TEST(LiveHypotheses, TheEndOfAnItemAbortsWhatRuns) {
  House house;
  Schedule schedule(house, live_policy(LiveDelay::kLow));
  const std::vector<int16_t> audio = chatter(3);
  for (int i = 0; i < 5; ++i) {
    schedule.hypotheses().begin_item(i * 300, i * 300);
    schedule.hear(audio);
    EXPECT_TRUE(schedule.hypotheses().is_running());
    schedule.hypotheses().end_item();
    EXPECT_FALSE(schedule.hypotheses().is_running());
  }
  EXPECT_EQ(schedule.tally()[LiveCount::kLostHypotheses], 5);
  EXPECT_TRUE(house.engine().drain(std::chrono::seconds(30)).ok());
}

}  // namespace
}  // namespace transept::testing
