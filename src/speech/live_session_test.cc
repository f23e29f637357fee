#include "speech/live_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/folder_testing.h"
#include "speech/live_testing.h"

namespace transept::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Samples instead of frames, and neither timestamps nor languages: with a tokenizer of letters and short words.
std::string moonshine_folder(const TestFolder& folder) {
  std::filesystem::copy(model_folder("moonshine-float16"), folder.path(),
                        std::filesystem::copy_options::overwrite_existing | std::filesystem::copy_options::recursive);
  std::string vocabulary = R"("<unk>": 0, "<s>": 1, "</s>": 2)";
  for (int i = 3; i < 64; ++i) vocabulary += str_cat(", \"", i % 3 == 0 ? " " : "", "t", i, "\": ", i);
  folder.write("tokenizer.json", str_cat(R"({"version": "1.0", "added_tokens": [
      {"id": 1, "content": "<s>", "special": true}, {"id": 2, "content": "</s>", "special": true}],
      "model": {"type": "BPE", "unk_token": "<unk>", "merges": [], "vocab": {)",
                                         vocabulary, "}}}"));
  return folder.path();
}

class LiveSessionTest : public ::testing::TestWithParam<std::string_view> {
 protected:
  LiveSessionTest() {
    EngineConfig config;
    if (GetParam() == "moonshine") config.model = moonshine_folder(folder_);
    house_ = std::make_unique<House>(config);
    LiveHost::Options options;
    options.transcribe = served_options();
    host_ = LiveHost::create(house_->speech(), options).value();
  }

  std::unique_ptr<LiveSession> open(const LiveOptions& options) {
    auto session = LiveSession::create(*host_, options, log_);
    EXPECT_TRUE(session.ok()) << session.status();
    return *std::move(session);
  }

  static LiveOptions by_hand(int32_t rate = 16000) {
    LiveOptions options;
    options.sampling_rate = rate;
    options.turn_detection = std::nullopt;
    return options;
  }

  TestFolder folder_;
  std::unique_ptr<House> house_;
  std::unique_ptr<LiveHost> host_;
  std::shared_ptr<LiveLog> log_ = std::make_shared<LiveLog>();
};

INSTANTIATE_TEST_SUITE_P(Models, LiveSessionTest, ::testing::Values("whisper", "moonshine"),
                         [](const auto& info) { return std::string(info.param); });

// The text that a file with the item's samples has, whatever the rate and however they came.
TEST_P(LiveSessionTest, TheTranscriptIsThatOfAFile) {
  for (const int32_t rate : {8000, 16000, 24000, 44100, 48000}) {
    const std::vector<int16_t> samples = synthetic_audio_at(rate, static_cast<uint32_t>(rate), 4.3);
    const std::string wanted = offline_text(*house_, samples, rate);
    EXPECT_FALSE(wanted.empty());
    for (const Cutting cutting : {Cutting::kWhole, Cutting::kFrames, Cutting::kOdd}) {
      SCOPED_TRACE(str_cat(rate, " Hz, cutting ", static_cast<int>(cutting)));
      log_ = std::make_shared<LiveLog>();
      const auto session = open(by_hand(rate));
      append_cut(*session, samples, rate, cutting);
      ASSERT_TRUE(session->commit().ok());
      ASSERT_TRUE(log_->wait_for("completed"));
      const LiveTranscript transcript = log_->of("completed")[0].transcript;
      EXPECT_EQ(transcript.text, wanted);
      EXPECT_NEAR(transcript.seconds, 4.3, 1e-3);
      EXPECT_EQ(transcript.languages.empty(), GetParam() == "moonshine");
      const std::string told = log_->joined_deltas(0);
      if (!transcript.was_revised) {
        EXPECT_EQ(told, wanted);
      }
      if (transcript.was_revised) {
        EXPECT_FALSE(wanted.starts_with(told));
      }
    }
  }
}

// Each item is resampled and normalised on its own: what was before has no part in it.
TEST_P(LiveSessionTest, ItemsHaveNothingOfEachOther) {
  const int32_t rate = 24000;
  const std::vector<int16_t> samples = synthetic_audio_at(rate, 5, 9);
  const auto session = open(by_hand(rate));
  const size_t ends[] = {24000, 24000 * 3 + 7, 24000 * 5 + 5001, samples.size()};
  size_t begin = 0;
  for (const size_t end : ends) {
    append_cut(*session, std::span(samples).subspan(begin, end - begin), rate, Cutting::kOdd);
    ASSERT_TRUE(session->commit().ok());
    begin = end;
  }
  session->finish();
  ASSERT_TRUE(log_->wait_for("finished"));
  const std::vector<LiveEvent> completed = log_->of("completed");
  ASSERT_EQ(completed.size(), 4u);
  begin = 0;
  std::string language;
  for (size_t i = 0; i < 4; ++i) {
    TranscribeOptions options = served_options();
    if (GetParam() == "whisper") options.language = completed[i].transcript.language;
    EXPECT_EQ(completed[i].item, static_cast<int64_t>(i));
    EXPECT_EQ(completed[i].text,
              offline_text(*house_, std::span(samples).subspan(begin, ends[i] - begin), rate, options));
    begin = ends[i];
  }
}

TEST_P(LiveSessionTest, FloatsAreRoundedAsAFileHasThem) {
  const std::vector<int16_t> samples = synthetic_audio(3, 32000);
  std::vector<float> floats(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) floats[i] = (static_cast<float>(samples[i]) + 0.3f) / 32768.0f;
  floats[5] = std::numeric_limits<float>::quiet_NaN();
  floats[6] = 7;
  floats[7] = -std::numeric_limits<float>::infinity();
  std::vector<int16_t> rounded = samples;
  rounded[5] = 0, rounded[6] = 32767, rounded[7] = -32768;
  const auto session = open(by_hand());
  ASSERT_TRUE(session->append(floats).ok());
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(log_->wait_for("completed"));
  EXPECT_EQ(log_->of("completed")[0].text, offline_text(*house_, rounded, 16000));
}

TEST_P(LiveSessionTest, TurnsAreWhatTheirTimesSay) {
  const int32_t rate = 44100;
  const std::vector<int16_t> samples = synthetic_audio_at(rate, 8, 12, {{0, 1.5}, {4, 6.2}, {9, 12}});
  std::vector<int64_t> bounds;
  for (const Cutting cutting : {Cutting::kWhole, Cutting::kFrames, Cutting::kOdd}) {
    log_ = std::make_shared<LiveLog>();
    LiveOptions options;
    options.sampling_rate = rate;
    const auto session = open(options);
    append_cut(*session, samples, rate, cutting);
    session->finish();
    ASSERT_TRUE(log_->wait_for("finished"));
    const std::vector<LiveEvent> started = log_->of("started"), stopped = log_->of("stopped");
    const std::vector<LiveEvent> completed = log_->of("completed");
    ASSERT_EQ(started.size(), completed.size());
    ASSERT_EQ(stopped.size(), completed.size());
    ASSERT_GE(completed.size(), 2u);
    std::vector<int64_t> found;
    for (size_t i = 0; i < completed.size(); ++i) {
      found.push_back(started[i].ms);
      found.push_back(stopped[i].ms);
      const auto begin = static_cast<size_t>(started[i].ms * rate / 1000);
      const auto end = static_cast<size_t>(stopped[i].ms * rate / 1000);
      TranscribeOptions offline = served_options();
      if (GetParam() == "whisper") offline.language = completed[i].transcript.language;
      EXPECT_EQ(completed[i].text,
                offline_text(*house_, std::span(samples).subspan(begin, end - begin), rate, offline));
    }
    EXPECT_EQ(host_->counts()[LiveCount::kFailed], 0);
    EXPECT_NEAR(static_cast<double>(started[0].ms), 1200, 100);
    EXPECT_NEAR(static_cast<double>(stopped.back().ms), 9200, 100);
    if (bounds.empty()) bounds = found;
    EXPECT_EQ(found, bounds);
  }
}

// A transcript that was begun in a pause is used if the pause ends the turn, and no other.
TEST_P(LiveSessionTest, APauseBeginsTheTranscript) {
  std::vector<int16_t> samples(16000);
  const auto add = [&](double seconds, bool is_sound) {
    const std::vector<int16_t> part =
        is_sound ? chatter(seconds) : std::vector<int16_t>(static_cast<size_t>(seconds * 16000));
    samples.insert(samples.end(), part.begin(), part.end());
  };
  add(1.5, true), add(0.35, false), add(1.5, true), add(1, false);
  LiveOptions options;
  options.sampling_rate = 16000;
  const auto session = open(options);
  append_cut(*session, samples, 16000, Cutting::kFrames);
  session->finish();
  ASSERT_TRUE(log_->wait_for("finished"));
  ASSERT_EQ(log_->of("completed").size(), 1u);
  EXPECT_EQ(host_->counts()[LiveCount::kEarlyFinals], 1);
  const int64_t start = log_->of("started")[0].ms, stop = log_->of("stopped")[0].ms;
  EXPECT_NEAR(static_cast<double>(start), 700, 50);
  // Sound ends at 4.35 s; the detector hears that a little later.
  EXPECT_GE(stop, 4550);
  EXPECT_LE(stop, 4750);
  const auto item =
      std::span(samples).subspan(static_cast<size_t>(start * 16), static_cast<size_t>((stop - start) * 16));
  EXPECT_EQ(log_->of("completed")[0].text, offline_text(*house_, item, 16000));
}

// It may be complete before the pause is long enough: then nothing else tells the session of it.
TEST_P(LiveSessionTest, ATranscriptThatWasEarlyIsTold) {
  LiveOptions options;
  options.sampling_rate = 16000;
  options.delay = LiveDelay::kXhigh;  // no hypothesis wakes the session
  const auto session = open(options);
  std::vector<int16_t> samples = chatter(2);
  samples.resize(samples.size() + 6400);
  ASSERT_TRUE(session->append_pcm16(samples).ok());
  std::this_thread::sleep_for(std::chrono::seconds(1));
  ASSERT_TRUE(session->append_pcm16(std::vector<int16_t>(8000)).ok());
  ASSERT_TRUE(log_->wait_for("committed"));
  ASSERT_TRUE(log_->wait_for("completed"));  // without a further sample
  EXPECT_EQ(host_->counts()[LiveCount::kEarlyFinals], 1);
}

// The client commits in a pause, after the transcript of what was said until then has begun.
TEST_P(LiveSessionTest, ATranscriptOfFewerSamplesIsNotUsed) {
  LiveOptions options;
  options.sampling_rate = 16000;
  options.turn_detection = LiveTurnDetection{.silence_duration_ms = 5000};
  const auto session = open(options);
  std::vector<int16_t> samples(16000);
  const std::vector<int16_t> sound = chatter(2);
  samples.insert(samples.end(), sound.begin(), sound.end());
  for (int i = 0; i < 24000; ++i) samples.push_back(static_cast<int16_t>(i % 7 - 3));
  append_cut(*session, samples, 16000, Cutting::kFrames);
  ASSERT_TRUE(session->commit().ok());
  session->finish();
  ASSERT_TRUE(log_->wait_for("finished"));
  EXPECT_EQ(host_->counts()[LiveCount::kEarlyFinals], 0);
  const auto item = std::span(samples).subspan(static_cast<size_t>(log_->of("started")[0].ms * 16));
  EXPECT_EQ(log_->of("completed")[0].transcript.seconds, static_cast<double>(item.size()) / 16000);
  EXPECT_EQ(log_->of("completed")[0].text, offline_text(*house_, item, 16000));
}

// An item that waits for its transcript keeps what it was committed with.
TEST_P(LiveSessionTest, ACommittedItemKeepsItsOptions) {
  if (GetParam() != "whisper") return;  // the other one has one language
  LiveOptions options = by_hand(16000);
  options.language = "en";
  const auto session = open(options);
  const std::vector<int16_t> samples = synthetic_audio(2, 64000);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(session->append_pcm16(samples).ok());
    ASSERT_TRUE(session->commit().ok());
  }
  options.language = "de";
  ASSERT_TRUE(session->update(options).ok());
  ASSERT_TRUE(session->append_pcm16(samples).ok());
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(log_->wait_for("completed", 4));
  const std::vector<LiveEvent> completed = log_->of("completed");
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(completed[i].transcript.language, i < 3 ? "en" : "de") << i;
}

// Push to talk, though turns are detected.
TEST_P(LiveSessionTest, ACommitEndsATurn) {
  LiveOptions options;
  options.sampling_rate = 16000;
  const auto session = open(options);
  std::vector<int16_t> samples(16000);
  const std::vector<int16_t> sound = chatter(3);
  samples.insert(samples.end(), sound.begin(), sound.end());
  ASSERT_TRUE(session->append_pcm16(samples).ok());
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(session->append_pcm16(sound).ok());
  session->finish();
  ASSERT_TRUE(log_->wait_for("finished"));
  EXPECT_THAT(log_->outline(), ::testing::IsSupersetOf({"started 0", "committed 0", "started 1", "stopped 1",
                                                        "committed 1", "completed 0", "completed 1", "finished"}));
  const int64_t start = log_->of("started")[0].ms;
  const auto item = std::span(samples).subspan(static_cast<size_t>(start * 16));
  EXPECT_EQ(log_->of("completed")[0].text, offline_text(*house_, item, 16000));
  EXPECT_EQ(log_->of("started")[1].ms, 4000);
  EXPECT_EQ(log_->of("stopped")[0].ms, 7000);
  const auto rest = std::span(sound);
  TranscribeOptions offline = served_options();
  if (GetParam() == "whisper") offline.language = log_->of("completed")[1].transcript.language;
  EXPECT_EQ(log_->of("completed")[1].text, offline_text(*house_, rest, 16000, offline));
}

// What was heard last is committed, though it was no speech: the detector may have missed it.
TEST_P(LiveSessionTest, ACommitWithoutATurnTakesWhatIsHeld) {
  LiveOptions options;
  options.sampling_rate = 16000;
  const auto session = open(options);
  ASSERT_TRUE(session->append_pcm16(std::vector<int16_t>(16000 * 5)).ok());
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(log_->wait_for("completed"));
  EXPECT_THAT(log_->outline(), ElementsAre("committed 0", "completed 0"));
  EXPECT_LE(log_->of("completed")[0].transcript.seconds, 0.6);
  EXPECT_EQ(log_->of("completed")[0].text, "");
  EXPECT_TRUE(absl::IsFailedPrecondition(session->commit()));
}

TEST_P(LiveSessionTest, EndlessSpeechIsCutIntoWindows) {
  LiveOptions options;
  options.sampling_rate = 8000;
  options.delay = LiveDelay::kXhigh;
  const auto session = open(options);
  const std::vector<int16_t> fast = chatter(140);
  std::vector<int16_t> samples;
  for (size_t i = 0; i < fast.size(); i += 2) samples.push_back(fast[i]);
  append_cut(*session, samples, 8000, Cutting::kOdd);
  session->finish();
  ASSERT_TRUE(log_->wait_for("finished"));
  const std::vector<LiveEvent> started = log_->of("started"), stopped = log_->of("stopped");
  const std::vector<LiveEvent> completed = log_->of("completed");
  ASSERT_GE(completed.size(), 3u);
  ASSERT_EQ(started.size(), stopped.size());
  for (size_t i = 0; i < completed.size(); ++i) {
    EXPECT_LE(stopped[i].ms - started[i].ms, 30000);
    const auto item = std::span(samples).subspan(static_cast<size_t>(started[i].ms * 8),
                                                 static_cast<size_t>((stopped[i].ms - started[i].ms) * 8));
    TranscribeOptions offline = served_options();
    if (GetParam() == "whisper") offline.language = completed[i].transcript.language;
    EXPECT_EQ(completed[i].text, offline_text(*house_, item, 8000, offline)) << i;
  }
}

TEST_P(LiveSessionTest, LanguagesAreChosenAmongThoseThatAreGiven) {
  if (GetParam() == "moonshine") return;
  LiveOptions options = by_hand();
  options.languages = {"de"};
  const auto session = open(options);
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(session->append_pcm16(chatter(6)).ok());
    ASSERT_TRUE(session->commit().ok());
  }
  options.languages = {"de", "es"};
  ASSERT_TRUE(session->update(options).ok());
  ASSERT_TRUE(session->append_pcm16(chatter(6)).ok());
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(log_->wait_for("completed", 3));
  const std::vector<LiveEvent> completed = log_->of("completed");
  EXPECT_EQ(completed[0].transcript.language, "de");
  EXPECT_TRUE(completed[0].transcript.languages.empty());  // there is one alone
  EXPECT_EQ(completed[2].transcript.languages.size(), 2u);
  // What a long item is surely in, the next ones are.
  ASSERT_TRUE(session->append_pcm16(chatter(6)).ok());
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(log_->wait_for("completed", 4));
  const LiveTranscript next = log_->of("completed")[3].transcript;
  const LanguageGuess best = completed[2].transcript.languages.front();
  EXPECT_EQ(next.languages.empty(), best.probability >= 0.9) << best.probability;
  EXPECT_EQ(next.language, best.code);
}

TEST_P(LiveSessionTest, EventsComeInTheirOrder) {
  const auto session = open(by_hand());
  const std::vector<int16_t> samples = synthetic_audio(2, 16000);
  ASSERT_TRUE(session->append_pcm16(samples).ok());
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(session->append_pcm16(samples).ok());
  session->clear();
  ASSERT_TRUE(session->append_pcm16(samples).ok());
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(session->append_pcm16(samples).ok());
  session->finish();
  ASSERT_TRUE(log_->wait_for("finished"));
  const std::vector<std::string> outline = log_->outline();
  std::vector<std::string> commits, ends;
  for (const std::string& line : outline)
    (line.starts_with("com") && line.starts_with("committed") ? commits : ends).push_back(line);
  EXPECT_EQ(commits.size(), 2u);
  EXPECT_EQ(commits[0], "committed 0");
  EXPECT_EQ(ends.back(), "finished");
  EXPECT_EQ(log_->of("completed").size(), 2u);
  EXPECT_EQ(session->num_open_finals(), 0);
  EXPECT_EQ(session->num_waiting_seconds(), 0);
}

TEST_P(LiveSessionTest, ACommitOfTooLittleIsRefusedWithBothNumbers) {
  const auto session = open(by_hand(44100));
  const auto expect_refused = [&](std::string_view has) {
    const Status status = session->commit();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(error_message(status), HasSubstr(str_cat(has, " ms")));
    EXPECT_THAT(error_message(status), HasSubstr("100 ms"));
  };
  expect_refused("0");
  ASSERT_TRUE(session->append_pcm16(std::vector<int16_t>(4409)).ok());
  expect_refused("99");
  ASSERT_TRUE(session->append_pcm16(std::vector<int16_t>(1)).ok());
  EXPECT_TRUE(session->commit().ok());
  expect_refused("0");  // twice, while the first waits
  ASSERT_TRUE(log_->wait_for("completed"));
  expect_refused("0");
  ASSERT_TRUE(session->append_pcm16(std::vector<int16_t>(44100)).ok());
  session->clear();
  expect_refused("0");
  ASSERT_TRUE(log_->wait_for("cleared"));
  expect_refused("0");
  EXPECT_EQ(log_->of("completed")[0].text, "");  // silence
}

TEST_P(LiveSessionTest, AnItemWithoutAnEndIsRefused) {
  LiveOptions options = by_hand();
  options.max_item_seconds = 2;
  const auto session = open(options);
  ASSERT_TRUE(session->append_pcm16(std::vector<int16_t>(31000)).ok());
  const Status status = session->append_pcm16(std::vector<int16_t>(1001));
  EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
  EXPECT_THAT(error_message(status), HasSubstr("2 s"));
  ASSERT_TRUE(session->append_pcm16(std::vector<int16_t>(1000)).ok());
  ASSERT_TRUE(session->commit().ok());
  EXPECT_TRUE(session->append_pcm16(std::vector<int16_t>(32000)).ok());
  ASSERT_TRUE(log_->wait_for("completed"));
  EXPECT_EQ(log_->of("completed")[0].transcript.seconds, 2);
}

TEST_P(LiveSessionTest, NothingFollowsTheEndOfASession) {
  auto session = open(by_hand());
  session->finish();
  ASSERT_TRUE(log_->wait_for("finished"));
  EXPECT_TRUE(absl::IsFailedPrecondition(session->append_pcm16(std::vector<int16_t>(1600))));
  EXPECT_TRUE(absl::IsFailedPrecondition(session->commit()));
  session->clear();
  session->finish();
  session.reset();
  EXPECT_THAT(log_->outline(), ElementsAre("finished"));
}

// In the middle of everything, again and again: nothing is told afterwards, and nothing stays in the engine.
TEST_P(LiveSessionTest, AClientThatVanishesIsForgotten) {
  const std::vector<int16_t> samples = synthetic_audio(2, 16000 * 6);
  for (int i = 0; i < 20; ++i) {
    log_ = std::make_shared<LiveLog>();
    LiveOptions options = by_hand();
    if (i % 2 == 1) options.turn_detection = LiveTurnDetection{};
    options.delay = LiveDelay::kMinimal;
    auto session = open(options);
    ASSERT_TRUE(session->append_pcm16(samples).ok());
    if (i % 3 != 0) {
      ASSERT_TRUE(session->commit().ok());
    }
    if (i % 4 == 0) log_->wait_for("committed", i % 3 != 0 ? 1 : 0);
    session.reset();
    const size_t count = log_->events().size();
    EXPECT_EQ(host_->num_sessions(), 0);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_EQ(log_->events().size(), count);
  }
  host_.reset();
  EXPECT_TRUE(house_->engine().drain(std::chrono::seconds(30)).ok());
}

TEST_P(LiveSessionTest, ASessionMayGoFromItsOwnCall) {
  auto session = open(by_hand());
  LiveSession* const raw = session.get();
  Mutex mutex;
  bool gone = false;
  log_->on_event([&](const LiveEvent& event) {
    if (event.kind != "committed") return;
    const MutexLock lock(mutex);
    session.reset();
    gone = true;
  });
  {
    const MutexLock lock(mutex);
    ASSERT_TRUE(raw->append_pcm16(synthetic_audio(2, 16000)).ok());
    ASSERT_TRUE(raw->commit().ok());
  }
  ASSERT_TRUE(log_->wait_for("committed"));
  for (int i = 0; i < 1000; ++i) {
    const MutexLock lock(mutex);
    if (gone) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  host_.reset();  // what it did has ended
  EXPECT_TRUE(gone);
  EXPECT_TRUE(log_->of("completed").empty());
}

TEST_P(LiveSessionTest, OptionsChangeAtTheirPlace) {
  const auto session = open(by_hand(16000));
  const std::vector<int16_t> samples = synthetic_audio(2, 32000);
  ASSERT_TRUE(session->append_pcm16(samples).ok());
  LiveOptions other = by_hand(8000);
  const Status refused = session->update(other);
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_EQ(error_param(refused), "sampling_rate");
  EXPECT_EQ(session->options(), by_hand(16000));
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(session->update(other).ok());
  const std::vector<int16_t> slow = synthetic_audio_at(8000, 9, 3);
  ASSERT_TRUE(session->append_pcm16(slow).ok());
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(log_->wait_for("completed", 2));
  EXPECT_EQ(log_->of("completed")[0].text, offline_text(*house_, samples, 16000));
  EXPECT_EQ(log_->of("completed")[1].text, offline_text(*house_, slow, 8000));
  // With turn detection from here on; times go on.
  other.turn_detection = LiveTurnDetection{};
  other.sampling_rate = 16000;
  ASSERT_TRUE(session->update(other).ok());
  ASSERT_TRUE(session->append_pcm16(synthetic_audio(7, 16000 * 6, {{0, 32000}, {64000, 96000}})).ok());
  session->finish();
  ASSERT_TRUE(log_->wait_for("finished"));
  ASSERT_FALSE(log_->of("started").empty());
  EXPECT_NEAR(static_cast<double>(log_->of("started")[0].ms), 2000 + 3000 + 1700, 120);
}

TEST_P(LiveSessionTest, OnlySoManySessionsAreOpen) {
  LiveHost::Options options;
  options.max_sessions = 2;
  options.transcribe = served_options();
  const auto host = LiveHost::create(house_->speech(), options).value();
  auto first = LiveSession::create(*host, {}, log_), second = LiveSession::create(*host, {}, log_);
  ASSERT_TRUE(first.ok() && second.ok());
  const auto third = LiveSession::create(*host, {}, log_);
  EXPECT_TRUE(absl::IsResourceExhausted(third.status()));
  EXPECT_THAT(error_message(third.status()), HasSubstr("2"));
  EXPECT_EQ(host->num_sessions(), 2);
  first->reset();
  EXPECT_TRUE(LiveSession::create(*host, {}, log_).ok());
  second->reset();
  EXPECT_EQ(host->counts()[LiveCount::kSessions], 3);
}

// A file pushed at once: the caller is told when to go on.
TEST_P(LiveSessionTest, MuchAudioAtOnceIsCountedUntilItIsHeard) {
  const auto session = open(by_hand());
  ASSERT_TRUE(session->append_pcm16(std::vector<int16_t>(16000 * 70)).ok());
  ASSERT_TRUE(log_->wait_for("taken"));
  EXPECT_LT(session->num_waiting_seconds(), kLiveLowSeconds);
  for (int i = 0; i < 600 && session->num_waiting_seconds() > 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(session->num_waiting_seconds(), 0);
}

// ---- Hypotheses

TEST_P(LiveSessionTest, HypothesesComeBeforeTheCommitAndOnlyGrow) {
  LiveOptions options = by_hand();
  options.wants_hypotheses = true;
  options.delay = LiveDelay::kMinimal;
  const auto session = open(options);
  const std::vector<int16_t> samples = chatter(6);
  for (size_t at = 0; at < samples.size(); at += 4800) {
    const int64_t before = host_->counts()[LiveCount::kHypotheses];
    ASSERT_TRUE(session->append_pcm16(std::span(samples).subspan(at, 4800)).ok());
    if (at >= 9600) {
      for (int i = 0; i < 6000 && host_->counts()[LiveCount::kHypotheses] == before; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      ASSERT_GT(host_->counts()[LiveCount::kHypotheses], before);
    }
  }
  // Loops are given up, and this Moonshine says little else.
  EXPECT_GE(log_->of("hypothesis").size(), GetParam() == "moonshine" ? 1u : 15u);
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(log_->wait_for("completed"));
  const LiveTranscript transcript = log_->of("completed")[0].transcript;
  EXPECT_EQ(transcript.text, offline_text(*house_, samples, 16000));
  EXPECT_EQ(transcript.text.starts_with(log_->joined_deltas(0)), !transcript.was_revised);
  EXPECT_EQ(host_->counts()[LiveCount::kWordsTold], transcript.num_words_told);
}

TEST_P(LiveSessionTest, SilenceAndXhighHaveNoHypotheses) {
  LiveOptions options = by_hand();
  options.wants_hypotheses = true;
  {
    const auto session = open(options);
    append_cut(*session, std::vector<int16_t>(16000 * 20), 16000, Cutting::kFrames);
    session->finish();
    ASSERT_TRUE(log_->wait_for("finished"));
  }
  log_ = std::make_shared<LiveLog>();
  options.delay = LiveDelay::kXhigh;
  const auto session = open(options);
  append_cut(*session, synthetic_audio(2, 16000 * 5), 16000, Cutting::kFrames);
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(log_->wait_for("completed"));
  EXPECT_TRUE(log_->of("hypothesis").empty());
  EXPECT_EQ(host_->counts()[LiveCount::kHypotheses] + host_->counts()[LiveCount::kLostHypotheses], 0);
}

TEST_P(LiveSessionTest, ClearEndsAnItemWithoutAWord) {
  LiveOptions options = by_hand();
  options.wants_hypotheses = true;
  const auto session = open(options);
  const std::vector<int16_t> samples = synthetic_audio(2, 16000 * 2);
  append_cut(*session, samples, 16000, Cutting::kFrames);
  session->clear();
  append_cut(*session, samples, 16000, Cutting::kFrames);
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(log_->wait_for("completed"));
  const std::vector<LiveEvent> completed = log_->of("completed");
  ASSERT_EQ(completed.size(), 1u);
  EXPECT_EQ(completed[0].text, offline_text(*house_, samples, 16000));
  bool was_cleared = false;
  for (const LiveEvent& event : log_->events()) {
    was_cleared = was_cleared || event.kind == "cleared";
    if (event.item >= 0) {
      EXPECT_EQ(event.item == completed[0].item, was_cleared) << event.kind;
    }
  }
}

}  // namespace
}  // namespace transept::testing
