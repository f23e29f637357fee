// What stays of a live session: what its boundaries leave to the next commit, and what goes on once it is closed.
#include <gtest/gtest.h>

#include <thread>

#include "base/utf8.h"
#include "speech/live_session.h"
#include "speech/live_testing.h"

namespace transept::testing {
namespace {

class LiveSessionEndsTest : public ::testing::Test {
 protected:
  LiveSessionEndsTest() {
    LiveHost::Options options;
    options.transcribe = served_options();
    host_ = LiveHost::create(house_.speech(), options).value();
  }

  std::unique_ptr<LiveSession> open(const LiveOptions& options) {
    return LiveSession::create(*host_, options, log_).value();
  }
  static LiveOptions by_hand(int32_t rate = 16000) {
    LiveOptions options;
    options.sampling_rate = rate;
    options.turn_detection = std::nullopt;
    options.delay = LiveDelay::kXhigh;
    return options;
  }
  static bool becomes_true(const std::function<bool()>& condition) {
    for (int i = 0; i < 3000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  House house_;
  std::unique_ptr<LiveHost> host_;
  std::shared_ptr<LiveLog> log_ = std::make_shared<LiveLog>();
};

// While a commit or a clear has not been heard, what came behind it is all that the next one takes. Once it was heard,
// that is what the session still holds: turn detection forgets silence.
TEST_F(LiveSessionEndsTest, ABoundaryThatWasHeardSaysNothingOfLaterAudio) {
  for (const bool commits : {true, false}) {
    SCOPED_TRACE(commits);
    LiveOptions options = by_hand();
    options.turn_detection = LiveTurnDetection{};
    const auto session = open(options);
    ASSERT_TRUE(session->append_pcm16(std::vector<int16_t>(16000)).ok());
    if (commits) {
      ASSERT_TRUE(session->commit().ok());
    } else {
      session->clear();
    }
    ASSERT_TRUE(session->append_pcm16(std::vector<int16_t>(5 * 16000)).ok());
    ASSERT_TRUE(becomes_true([&] { return session->num_waiting_seconds() == 0; }));
    ASSERT_TRUE(session->update(by_hand()).ok());  // without turns, silence between them is no item's
    EXPECT_TRUE(becomes_true([&] { return session->update(by_hand(8000)).ok(); })) << "nothing is held";
    EXPECT_TRUE(absl::IsFailedPrecondition(session->commit()));
  }
}

// Twenty windows, of which the first has begun when the session goes.
TEST_F(LiveSessionEndsTest, ATranscriptIsGivenUpWithItsSession) {
  const int64_t before = house_.num_encoder_runs();
  auto session = open(by_hand());
  ASSERT_TRUE(session->append_pcm16(synthetic_audio(2, 16000 * 600)).ok());
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(becomes_true([&] { return house_.num_encoder_runs() > before; }));
  session.reset();
  host_.reset();  // its threads have ended
  EXPECT_LT(house_.num_encoder_runs() - before, 10);
}

TEST_F(LiveSessionEndsTest, ATranscriptIsGivenUpIfTheSessionGoesFromItsOwnCall) {
  auto session = open(by_hand());
  LiveSession* const raw = session.get();
  Mutex mutex;
  std::atomic<bool> is_gone = false;
  log_->on_event([&](const LiveEvent& event) {
    if (event.kind != "committed") return;
    const MutexLock lock(mutex);
    session.reset();
    is_gone = true;
  });
  {
    const MutexLock lock(mutex);
    ASSERT_TRUE(raw->append_pcm16(synthetic_audio(2, 16000 * 600)).ok());
    ASSERT_TRUE(raw->commit().ok());
  }
  ASSERT_TRUE(becomes_true([&] { return is_gone.load(); }));
  host_.reset();
  EXPECT_LT(house_.num_encoder_runs(), 10);
  EXPECT_TRUE(log_->of("completed").empty());
}

// A client may send a sample at a time, as fast as it can.
TEST_F(LiveSessionEndsTest, AMillionAppendsAreOneItem) {
  const std::vector<int16_t> samples = synthetic_audio_at(24000, 5, 1e6 / 24000);
  ASSERT_EQ(samples.size(), 1'000'000u);
  const auto session = open(by_hand(24000));
  for (size_t i = 0; i < samples.size(); ++i) {
    ASSERT_TRUE(session->append_pcm16(std::span(samples).subspan(i, 1)).ok());
  }
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(log_->wait_for("completed"));
  const std::string wanted = offline_text(house_, samples, 24000);
  EXPECT_FALSE(wanted.empty());
  EXPECT_EQ(log_->of("completed")[0].text, wanted);
}

// They change no transcript, and joined they are it.
// What is told of audio does not depend on how soon the next comes, if that comes when a session is idle.
TEST_F(LiveSessionEndsTest, AnIdleSessionDoesNothingMore) {
  LiveOptions options = by_hand();
  options.delay = LiveDelay::kLow;
  options.wants_hypotheses = true;
  const std::vector<int16_t> samples = chatter(3);
  const auto session = open(options);
  EXPECT_TRUE(session->is_idle());
  size_t num_hypotheses = 0;
  for (size_t at = 0; at < samples.size(); at += 8000) {
    ASSERT_TRUE(session->append_pcm16(std::span(samples).subspan(at, 8000)).ok());
    ASSERT_TRUE(becomes_true([&] { return session->is_idle(); }));
    num_hypotheses = log_->of("hypothesis").size();
    EXPECT_EQ(static_cast<int64_t>(num_hypotheses), host_->counts()[LiveCount::kHypotheses]);
  }
  EXPECT_GE(num_hypotheses, 4u);
  ASSERT_TRUE(session->commit().ok());
  EXPECT_TRUE(!session->is_idle() || !log_->of("completed").empty());
  ASSERT_TRUE(becomes_true([&] { return session->is_idle(); }));
  EXPECT_EQ(log_->of("completed").size(), 1u);
}

TEST_F(LiveSessionEndsTest, TokensComeWithTheirLogprobsIfTheyAreWanted) {
  const std::vector<int16_t> samples = synthetic_audio(3, 16000 * 40);
  LiveOptions options = by_hand();
  options.wants_logprobs = true;
  const auto session = open(options);
  ASSERT_TRUE(session->append_pcm16(samples).ok());
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(session->update(by_hand()).ok());
  ASSERT_TRUE(session->append_pcm16(samples).ok());
  ASSERT_TRUE(session->commit().ok());
  ASSERT_TRUE(log_->wait_for("completed", 2));
  const std::vector<LiveEvent> completed = log_->of("completed");
  const std::string wanted = offline_text(house_, samples, 16000);
  ASSERT_FALSE(wanted.empty());
  std::string joined;
  double least = 0;
  for (const LiveToken& token : completed[0].transcript.tokens) {
    joined += token.bytes;
    EXPECT_LE(token.logprob, 0);
    least = std::min(least, static_cast<double>(token.logprob));
  }
  EXPECT_EQ(completed[0].text, wanted);
  EXPECT_EQ(std::string(strip_space(sanitize_utf8(joined))), wanted);
  EXPECT_LT(least, -1e-3) << "of a model that is never that sure";
  EXPECT_TRUE(completed[1].transcript.tokens.empty());
}

}  // namespace
}  // namespace transept::testing
